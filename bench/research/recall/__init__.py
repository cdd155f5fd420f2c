"""Recall: how well a search finds the session in which what is asked for was said.

A set is a JSON file:

    {
      "about": "where it is from",
      "groups": [
        {
          "sessions": [
            {"id": "s1", "date": "2026-01-10T18:30:00Z", "messages": [{"role": "user", "text":
            "..."}, ...]},
            ...
          ],
          "questions": [{"question": "...", "evidence": ["s1"]}, ...]
        },
        ...
      ]
    }

A question is asked of the sessions of its group; `evidence` names those in which the answer is.
`role` is user or assistant; a message may have a `speaker` instead, whose name then stands before
the text, the first one being the user."""
