#!/usr/bin/env bash
# A conversation has 100 messages of about 107 tokens, and a library shortens it with a summary. LangChain is told to do so above 10,000
# tokens and to keep 20 messages, langmem above 10,000 and to return 4,000 tokens. Strands and LlamaIndex have their own limits.
# Guess: each message is either kept, or is given to the model that writes the summary.
# Seen: so it is with strands-agents 1.62.0 and llama-index-core 0.14.25. LangChain 1.5.2 gives this model only the last 4,000 tokens
# before the kept messages, and langmem 0.0.30 as many as it shall return. So the oldest messages are in neither: the first prompt, which
# says what the task is, and 43 or 57 more. No error, no warning.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check langchain==1.5.2 langmem==0.0.30 strands-agents==1.62.0 llama-index-core==0.14.25
cat >seen.py <<'PY'
import itertools
import re
import warnings

warnings.simplefilter("ignore")
ROLES = itertools.cycle(("user", "assistant"))
MESSAGES = [(role, f"message {number:03}{' and so on' * 40}") for number, role in zip(range(1, 101), ROLES)]
read = []  # what the model was given


def langchain_model():
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    class Model(GenericFakeChatModel):
        def _generate(self, messages, *arguments, **options):
            read.extend(message.content for message in messages)
            return super()._generate(messages, *arguments, **options)

    return Model(messages=itertools.repeat("the summary"))


def langchain_messages():
    from langchain_core.messages import AIMessage, HumanMessage

    kinds = {"user": HumanMessage, "assistant": AIMessage}
    return [kinds[role](text, id=text[:11]) for role, text in MESSAGES]


def langchain():
    from langchain.agents.middleware import SummarizationMiddleware

    middleware = SummarizationMiddleware(model=langchain_model(), trigger=("tokens", 10_000), keep=("messages", 20))
    return [message.content for message in middleware.before_model({"messages": langchain_messages()}, None)["messages"]]


def langmem():
    from langchain_core.messages.utils import count_tokens_approximately
    from langmem.short_term import summarize_messages

    limits = {"max_tokens_before_summary": 10_000, "max_tokens": 4_000, "token_counter": count_tokens_approximately}
    shortened = summarize_messages(langchain_messages(), running_summary=None, model=langchain_model(), **limits)
    return [message.content for message in shortened.messages]


def strands():
    from strands import Agent
    from strands.agent.conversation_manager import SummarizingConversationManager
    from strands.models import Model

    class Fake(Model):
        def update_config(self, **config): ...

        def get_config(self):
            return {}

        def structured_output(self, *arguments, **options): ...

        async def stream(self, messages, *arguments, **options):
            read.extend(message["content"][0]["text"] for message in messages)
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": "the summary"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    messages = [{"role": role, "content": [{"text": text}]} for role, text in MESSAGES]
    manager = SummarizingConversationManager()
    agent = Agent(model=Fake(), conversation_manager=manager, messages=messages, callback_handler=None)
    manager.reduce_context(agent)
    return [message["content"][0]["text"] for message in agent.messages]


def llama_index():
    from llama_index.core.llms import ChatMessage, MockLLM
    from llama_index.core.memory import ChatSummaryMemoryBuffer

    class Model(MockLLM):
        def chat(self, messages, **options):
            read.extend(message.content for message in messages)
            return super().chat([ChatMessage(role="user", content="the summary")], **options)

    messages = [ChatMessage(role=role, content=text) for role, text in MESSAGES]
    memory = ChatSummaryMemoryBuffer.from_defaults(messages, llm=Model(), token_limit=4_000, tokenizer_fn=str.split)
    return [message.content for message in memory.get()]


for library in (langchain, langmem, strands, llama_index):
    read.clear()
    known = set(re.findall(r"message (\d{3})", " ".join(library() + read)))
    lost = [text[8:11] for _, text in MESSAGES if text[8:11] not in known]
    print(f"{library.__name__}: {f'messages {lost[0]} to {lost[-1]}, {len(lost)} in all, are lost' if lost else 'none is lost'}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
langchain: messages 001 to 044, 44 in all, are lost
langmem: messages 001 to 058, 58 in all, are lost
strands: none is lost
llama_index: none is lost
END
