"""What counts as a secret: one row for each rule, by which texts are searched and from which examples are made.

The design is that of gitleaks: a rule has keywords that are looked for with plain string methods, and a regex that is
tried only where one of them stands. Import no `re` here: prompts wait for this module.

A row says what is redacted, in the words of "[redacted: ...]"; then by its form:

  token(kind, prefixes, body)     a token that shows what it is: a prefix that does not stand within a word, and `body`.
  inside(kind, keywords, regex)   matched where a keyword stands within a long run of characters that has a digit.
  named(kind, names, value)       an assignment: `value` stands after `=`, `:` and the like, and a word of the name is
                                  one of `names` (two words as one: new_relic, newRelic and new-relic are newrelic; a
                                  star stands for any beginning).
  place(kind, keywords, regex)    matched where a keyword stands, in any case.
  command(kind, names, options, regex)  matched where an option stands behind the name of a command.
  digits(kind, keywords, regex)   as place; in the keywords 0 stands for any digit, and a blank for a hyphen too.
  assigned(kind)                  an assignment to a name that ends in a word like password: see assignments.py.

and then examples: templates, {class:length}, so that no secret stands here. What is redacted of one stands in « »;
without these marks it is all of it. For a token they are what follows each of the prefixes. Options: `gate`, a literal
without which a text holds nothing of the kind; `before`, how many characters before its keyword a regex may begin;
`judge`, what judge.py must say of it: random (not like words), shape (the same, more lenient), varied (not few
characters over and over), password, prose, url, luhn.

Of a regex the group `secret` is redacted, or the value that begins where the group `value` is, or all of it. <hex>,
<gap> and so on stand for what scan.py says. Where finds overlap, all of both goes, by the kind of the row that stands
first. The formats are those that the services document or that their tokens show.
"""

from __future__ import annotations


class SecretRule:
    """One row, see above; `number` is its place among them."""

    __slots__ = ("before", "examples", "form", "gate", "judge", "keywords", "kind", "number", "pattern")

    def __init__(
        self, form: str, kind: str, keywords: list[str], pattern: str, examples: tuple[str, ...], gate: str,
        before: int, judge: str,
    ) -> None:  # fmt: skip
        self.form = form
        self.kind = kind
        self.keywords = keywords
        self.pattern = pattern
        self.examples = examples
        self.gate = gate
        self.before = before
        self.judge = judge
        self.number = len(RULES)
        RULES.append(self)


RULES: list[SecretRule] = []


def token(kind: str, prefixes: str, body: str, *examples: str, judge: str = "") -> None:
    pattern = f"<begin>(?:{'|'.join(prefixes.replace('.', '[.]').split())})(?P<body>{body})<token-end>"
    SecretRule("token", kind, prefixes.split(), pattern, examples, "", 0, judge)


def inside(kind: str, keywords: str, regex: str, *examples: str, before: int = 0, judge: str = "") -> None:
    SecretRule("inside", kind, keywords.split(), regex, examples, "", before, judge)


def named(kind: str, names: str, value: str, *examples: str, judge: str = "") -> None:
    SecretRule("named", kind, names.split(), f"(?:{value})<value-end>", examples, "", 0, judge)


def place(
    kind: str, keywords: str, regex: str, *examples: str, gate: str = "", before: int = 0, judge: str = ""
) -> None:
    SecretRule("place", kind, keywords.split("|"), regex, examples, gate, before, judge)


def command(kind: str, names: str, options: str, regex: str, *examples: str, judge: str = "argument") -> None:
    SecretRule("command", kind, options.split("|"), regex, examples, names, 0, judge)


def digits(kind: str, keywords: str, regex: str, *examples: str, judge: str) -> None:
    SecretRule("digits", kind, keywords.split("|"), regex, examples, "", 0, judge)


def assigned(kind: str, *examples: str) -> None:
    SecretRule("assigned", kind, [], "", examples, "", 0, "")


# fmt: off
# Languages write in other scripts and with other letters: these are looked for as they stand here.
FOREIGN = (
    "mot de passe|contraseña|Contraseña|senha|kennwort|wachtwoord"
    "|пароль|Пароль|密码|密碼|パスワード|hasło|Hasło|lösenord|Lösenord|비밀번호"
)
PASSWORDS = "password|passwort|passphrase|passcode|" + FOREIGN


# --- keys ---
# Also cut off before its END line. Between the lines of base64 may stand what a JSON string, source code or a listing
# with line numbers puts there; the last one may be short.
place("private key", "-----begin |---- begin ssh2 ",
      r"-{4,5} ?BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
      r'(?:<gap>|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\"]{0,120}){0,200}'
      r"(?:[A-Za-z0-9+/=]{20,}(?:<gap>{0,64}[A-Za-z0-9+/=]{20,})*"
      r"(?:(?:<gap>{0,64}[A-Za-z0-9+/=]{1,64}){0,2}<gap>{0,64}-{4,5} ?END[ A-Z0-9]{0,40}KEY(?: BLOCK)? ?-{4,5}"
      r"|<gap>{1,64}(?=[A-Za-z]{0,18}[0-9+/=])[A-Za-z0-9+/=]{1,19}(?=[ \t]*(?:\n|\\|<mark>|\Z)))?"
      r"|MI[A-Za-z0-9+/=]{0,18}(?![A-Za-z0-9+/=]))",
      "-----BEGIN RSA PRIVATE KEY-----\n{pem:10}\n-----END RSA PRIVATE KEY-----",
      "«-----BEGIN OPENSSH PRIVATE KEY-----\n{pem:6}»\nand", "«-----BEGIN RSA PRIVATE KEY-----\nMIIE{b62:9}»\n\n",
      "-----BEGIN PRIVATE KEY-----\\n{pemjson:9}\\n-----END PRIVATE KEY-----",
      '«-----BEGIN PRIVATE KEY-----\\n{pemjson:3}»"}',
      "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{HEX:32}\n\n{pem:4}\n"
      "-----END EC PRIVATE KEY-----",
      "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{pem:8}\n={b62:4}\n-----END PGP PRIVATE KEY BLOCK--"
      "---",
      "-----BEGIN PRIVATE KEY-----\n     2→{b62:64}\n     3→{b62:64}\n     4→{b62:20}\n"
      "     5→-----END PRIVATE KEY-----")
place("private key", "private-lines: ",
      r"(?i:private-lines: )[0-9]{1,3}<gap>{1,4}(?P<secret>[A-Za-z0-9+/=]{20,}(?:<gap>{1,4}[A-Za-z0-9+/=]{20,}){0,200}"
      r"(?:<gap>{1,4}[A-Za-z0-9+/=]{1,19}(?=[\s\\]|$))?)", "Private-Lines: 2\n«{b64:64}\n{b64:44}»\nPrivate-MAC: 1")
token("age secret key", "AGE-SECRET-KEY-", "1[0-9A-Z]{50,60}", "1{B36:58}")
place("private key", 'd":|d\\":|d\\\\\\":', r'(?<!\w)d\\{0,7}":[ ]?\\{0,7}"(?P<secret><url>{20,2000})',
      '{"kty":"EC","crv":"P-256","x":"{url:43}","d":"«{url:43}»"}', gate="kty")
named("private key", "privatekey presharedkey", "[A-Za-z0-9+/]{43}=", "PrivateKey = «{b64:43}=»")
token("grafana token", "eyJrIjoi", "<b64>{50,400}={0,3}", "{b62:80}==")
token("jwt", "eyJ",
      r"<url>{10,4000}\.(?:ey<url>{10,20000}(?:\.<url>{0,2000})?|<url>{0,2000}\.<url>{8,200}\.<url>{10,20000}\.<url>{8"
      r",200})",
      "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{b62:60}.{url:43}", "hbGciOiJub25lIn0.eyJ{b62:60}",
      "{b62:40}.{url:80}.{url:16}.{url:120}.{url:22}")
token("jwt", "ZXlK", "<b64>{60,8000}={0,2}", "{b62:120}==")

# --- clouds ---
token("aws access key", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}(?<!EXAMPLE)", "{b32:16}")
token("aws access key", "A3T", "[A-Z0-9][A-Z2-7]{16}", "X{b32:16}", judge="varied")
named("aws secret key", "aws secretaccess", r"(?!<hex>+(?!\w)|/)(?![A-Za-z0-9/+]{0,31}EXAMPLEKEY)[A-Za-z0-9/+]{40}",
      "aws_secret_access_key = «{b62:40}»",
      '"SecretAccessKey": "«{b62:40}»"', judge="shape")
named("aws session token", "aws sessiontoken securitytoken", "<b64>{100,4000}={0,2}", "AWS_SESSION_TOKEN=«{b64:300}==»",
      judge="shape")
token("aws mws token", "amzn.mws.", "<uuid>", "{uuid}")
token("aws bedrock key", "ABSK", "<b64>{100,300}={0,2}", "{b62:128}=")
token("aws bedrock key", "bedrock-api-key-", "<b64>{20,4000}={0,2}", "{b62:200}")
inside("url signature", "X-Amz-Signature=", "X-Amz-Signature=(?P<secret><hex>{64})",
       "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=«{hex:64}»")
inside("azure client secret", "Q~", r"<begin>[A-Za-z0-9_~.]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~-])", "{b62:3}8Q~{b62:34}",
       before=4, judge="varied")
named("azure storage key", "accountkey sharedaccess storagekey storageaccount", "[A-Za-z0-9+/]{43,86}={1,2}",
      "AccountKey=«{b64:86}==»;EndpointSuffix=x", "SharedAccessKey=«{b64:43}=»")
inside("url signature", "sig=", r"(?<!\w)sig=(?P<secret>(?:<b64>|%2[BbFf]){40,90}(?:=|%3[Dd]){1,2})",
       "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=«{b62:43}%3D»")
named("azure devops token", "azuredevops devops ado vsts azure", "[a-z2-7]{52}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
      "AZURE_DEVOPS_PAT=«{b32l:52}»", "AZURE_DEVOPS_EXT_PAT=«{b62:76}AZDO{b62:4}»", judge="shape")
named("azure key", "azure subscriptionkey", "<hex>{32}", 'AZURE_OPENAI_API_KEY="«{hex:32}»"', judge="shape")
token("google api key", "AIza", "<url>{35}", "{url:35}")
token("google api key", "AQ.", r"[\w-]{30,200}", "Ab8RN6{url:44}", judge="shape")
token("google oauth secret", "GOCSPX-", "<url>{28}", "{url:28}")
token("google oauth token", "ya29.", "<url>{20,1500}", "{url:150}")
named("google oauth token", "google gcp refreshtoken", "1//0<url>{40,160}", '"refresh_token": "«1//0{url:97}»"')
inside("google oauth token", "1//0", "<begin>1//0<url>{40,160}", "1//0{url:97}")
inside("firebase key", ":APA91b", "<begin><url>{11}:APA91b<url>{100,160}", "AAAA{b62:7}:APA91b{url:134}", before=11)
token("alibaba access key", "LTAI", "<b62>{12,26}", "{b62:20}", judge="varied")
named("alibaba secret key", "alibaba aliyun alicloud", "<b62>{30}", 'alibaba_secret = "«{b62:30}»"', judge="shape")
token("tencent secret id", "AKID", "<b62>{32}", "{b62:32}")
named("tencent secret key", "tencent tencentcloud qcloud", "<b62>{32}", "TENCENTCLOUD_SECRET_KEY=«{b62:32}»",
      judge="shape")
named("ibm cloud key", "ibm ibmcloud", "<url>{44}", "IBMCLOUD_API_KEY=«{b62:44}»", judge="shape")
token("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", "<hex>{64}", "{hex:64}")
named("linode token", "linode", "<hex>{64}", "LINODE_TOKEN=«{hex:64}»")
named("hetzner token", "hetzner hcloud", "<b62>{64}", "HCLOUD_TOKEN=«{b62:64}»", judge="shape")
named("vultr key", "vultr", "<B36>{36}", "VULTR_API_KEY=«{B36:36}»", judge="shape")
named("scaleway key", "scw scaleway", "<uuid>", "SCW_SECRET_KEY=«{uuid}»")
token("scalingo token", "tk-us-", "<url>{48}", "{url:48}")
named("heroku key", "heroku", "<uuid>", "HEROKU_API_KEY=«{uuid}»", "heroku auth token: «{uuid}»")
token("heroku key", "HRKU-", "<url>{36,64}", "AA{url:58}", "{uuid}")
token("fly.io token", "fo1_ fm1r_ fm1a_ fm2_", "<b64u>{43,2000}={0,3}", "{url:43}", "{b62:160}==")
token("render key", "rnd_", "<b62>{28,40}", "{b62:28}", judge="varied")
named("railway token", "railway", "<uuid>", "RAILWAY_TOKEN=«{uuid}»")
named("vercel token", "vercel", "<b62>{24}", "VERCEL_TOKEN=«{b62:24}»", judge="shape")
token("vercel token", "vcp_ vci_ vca_ vcr_ vck_", "<b62>{24,100}", "{b62:56}")
token("vercel token", "vercel_blob_rw_", "<b62>{16}_<b62>{24,60}", "{b62:16}_{b62:30}")
named("netlify token", "netlify", r"[\w=-]{40,46}", "NETLIFY_AUTH_TOKEN=«{url:43}»", judge="shape")
token("netlify token", "nfp_", "<b62>{36,40}", "{b62:36}")
token("cloudflare key", "v1.0-", "<hex>{24}-<hex>{146}", "{hex:24}-{hex:146}")
named("cloudflare key", "cloudflare", "<hex>{37}", "CLOUDFLARE_API_KEY=«{hex:37}»")
named("cloudflare key", "cloudflare cfapi", "<url>{40}", 'cloudflare_api_token = "«{url:40}»"', judge="shape")
token("cloudflare token", "cfk_ cfut_ cfat_", "<b62>{40,56}", "{b62:48}")
named("fastly token", "fastly", "<url>{32}", 'FASTLY_API_TOKEN="«{url:32}»"', judge="shape")
token("supabase token", "sbp_ sbp_oauth_", "<hex>{40}", "{hex:40}")
token("supabase key", "sb_secret_", "<url>{22,60}", "{url:31}")
place("kubernetes secret", 'kind: secret|kind: "secret"',
      r'kind: "?Secret\b(?:(?!---)[\s\S]){0,600}?\b(?:d|stringD)ata:[ \t]*(?:\n|\\n)'
      r"(?P<secret>(?:[ \t]+[\w.-]+:[ \t]*[^\n\\]{1,20000}(?:\n|\\n|$)){1,50})",
      "kind: Secret\nmetadata:\n  name: db\ndata:\n«  username: {b64:12}\n  password: {b64:24}\n»type: Opaque")
named("kubernetes token", "token bootstrap", r"<b36>{6}\.<b36>{16}",
      "kubeadm join 10.0.0.1:6443 --token=«{b36:6}.{b36:16}»", judge="shape")
token("openshift token", "sha256~", "<url>{43}", "{url:43}")
named("rancher token", "rancher cattle token bearer", "token-<b36>{5}:<b36>{54}",
      "RANCHER_TOKEN=«token-{b36:5}:{b36:54}»")

# --- code hosts, registries, build services ---
token("github token", "ghp_ gho_ ghu_ ghs_ ghr_", "<b62>{36,255}", "{b62:36}", "{b62:76}")
token("github token", "github_pat_", r"\w{36,255}", "{b62:22}_{b62:59}")
token("gitlab token", "glpat- gldt- glrt- glft- glimt- glagent- gloas- glptt- glffct- glsoat- glwt- GR1348941",
      r"[\w.-]{20,300}", "{url:20}", "{url:27}.01.{b36:9}", "t1_{url:27}.01.{b36:9}", "{url:25}", "{url:50}",
      "{hex:64}", "{hex:40}")
token("gitlab token", "glcbt-", "<b62>{1,5}_<url>{20}", "{b62:4}_{url:20}")
inside("session cookie", "_gitlab_session=", "_gitlab_session=(?P<secret><b36>{32})",
       "curl -b _gitlab_session=«{hex:32}»")
token("bitbucket token", "ATBB ATCTT3", r"[\w=-]{28,250}", "{b62:32}", "{url:180}")
named("bitbucket secret", "bitbucket", "<b62>{32}|<url>{64}", 'bitbucket_client_id="«{b36:32}»"',
      'bitbucket_client_secret="«{url:64}»"', judge="shape")
token("npm token", "npm_", "<b62>{36}", "{b62:36}")
token("pypi token", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZ", "<url>{50,1000}", "{url:140}")
token("rubygems token", "rubygems_", "<hex>{48}", "{hex:48}")
named("crates.io token", "crates cratesio cargo cargoregistry", "cio<b62>{32}", "CARGO_REGISTRY_TOKEN=«cio{b62:32}»")
token("clojars token", "CLOJARS_", "<b62>{60}", "{hex:60}")
named("nuget key", "nuget apikey", "oy2<b36>{43}", "NUGET_API_KEY=«oy2{b36:43}»")
place("password", 'password"|password\\"|password\\\\\\"',
      r'(?i:password)\\{0,7}"\s{0,20}value=\\{0,7}"(?P<secret>(?!%)[^"\s\\]{6,300})\\{0,7}"',
      '<add key="ClearTextPassword" value="«{b62:14}!»" />')
token("artifactory key", "AKCp", "<b62>{59,69}", "{b62:69}")
named("artifactory token", "jfrog artifactory *token *key auth authorization password", "cmVmd<b62>{59}",
      "ARTIFACTORY_TOKEN=«cmVmd{b62:59}»")
named("jfrog token", "jfrog artifactory bintray xray", "<b62>{73}|<b62>{64}", 'jfrog_api_key: "«{b36:73}»"',
      "artifactory_token: «{b36:64}»", judge="shape")
token("docker token", "dckr_pat_ dckr_oat_", "<url>{27,32}", "{url:27}")
token("circleci token", "CCIPAT_", "<b62>{22}_<hex>{40}", "{b62:22}_{hex:40}")
named("circleci token", "circleci circle", "<hex>{40}", "CIRCLECI_TOKEN=«{hex:40}»")
token("buildkite token", "bkua_ bkaj_", "<b62>{40}", "{hex:40}")
named("travis token", "travis travisci", "<url>{22}", 'TRAVIS_TOKEN="«{b62:22}»"', judge="shape")
named("drone token", "droneci drone", "<b62>{32}", "DRONECI_TOKEN=«{b36:32}»", judge="shape")
named("jenkins token", "jenkins", "11<hex>{32}", "JENKINS_API_TOKEN=«11{hex:32}»")
named("codecov token", "codecov", "<b62>{32}|<uuid>", "CODECOV_TOKEN=«{b36:32}»", "CODECOV_TOKEN: «{uuid}»",
      judge="shape")
named("coveralls token", "coveralls", "<b62>{32,37}", "COVERALLS_REPO_TOKEN=«{b62:33}»", judge="shape")
named("snyk token", "snyk", "<uuid>", "SNYK_TOKEN=«{uuid}»")
token("sonar token", "squ_ sqp_ sqa_", "<hex>{40}", "{hex:40}")
named("sonar token", "sonar sonarqube sonarcloud", "<url>{40}", "sonar.login=«{hex:40}»", judge="shape")
token("sourcegraph token", "sgp_", "(?:(?:<hex>{16}|local)_)?<hex>{40}", "{hex:16}_{hex:40}", "{hex:40}")
named("sourcegraph token", "sourcegraph src", "<hex>{40}", "SRC_ACCESS_TOKEN=«{hex:40}»")
token("infracost key", "ico-", "<b62>{32}", "{b62:32}")
inside("terraform token", ".atlasv1.", r"<begin><b62>{14}\.atlasv1\.[\w=-]{60,70}", "{b62:14}.atlasv1.{url:67}",
       before=14)
token("pulumi token", "pul-", "<hex>{40}", "{hex:40}")
token("octopus key", "API-", "<B36>{26,32}", "{B36:26}", judge="varied")
token("harness key", "pat. sat.", r"<url>{22}\.<b62>{24}\.<b62>{20}", "{url:22}.{hex:24}.{b62:20}")
token("launchdarkly key", "sdk- api- mob-", "<uuid>", "{uuid}")
named("launchdarkly key", "launchdarkly", "<url>{40}", "LAUNCHDARKLY_TOKEN=«{url:40}»", judge="shape")
token("statsig key", "secret-", "<b62>{40,50}", "{b62:43}", judge="shape")
token("prefect key", "pnu_ pnb_", "<b62>{36}", "{b62:36}")
token("dbt token", "dbtc_ dbtu_", "<url>{32,60}", "{url:46}")

# --- vaults and identity ---
token("vault token", "hvs. hvb. hvr.", "<url>{24,300}", "{url:95}", "{url:150}")
token("vault token", "s.", r"<b62>{24}(?!\w)", "{b62:24}", judge="shape")
named("vault token", "vault", r"s\.<b62>{24}", "VAULT_TOKEN=«s.{b62:24}»", judge="shape")
named("consul token", "consul nomad", "<uuid>", "CONSUL_HTTP_TOKEN=«{uuid}»")
token("doppler token", "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", "<b62>{40,48}", "{b62:43}")
token("doppler token", "dp.st.", r"(?:[\w-]{1,36}\.)?<b62>{40,48}", "prd.{b62:43}", "{b62:43}")
token("infisical token", "st.", r"<hex>{24}\.<hex>{32}\.<hex>{32}", "{hex:24}.{hex:32}.{hex:32}")
token("1password token", "ops_eyJ", "<b64u>{100,4000}={0,3}", "{b62:300}==")
token("1password secret key", "A3-", "<B36>{6}-(?:<B36>{11}|<B36>{6}-<B36>{5})-<B36>{5}-<B36>{5}-<B36>{5}",
      "{B36:6}-{B36:6}-{B36:5}-{B36:5}-{B36:5}-{B36:5}", "{B36:6}-{B36:11}-{B36:5}-{B36:5}-{B36:5}", judge="varied")
named("okta token", "okta ssws", r"00[\w=-]{40}", "OKTA_API_TOKEN=«00{url:40}»", judge="shape")
named("auth0 secret", "auth0", "<url>{64}", "AUTH0_CLIENT_SECRET=«{url:64}»", judge="shape")
token("authress key", "sc_ ext_ scauth_ authress_",
      r"<b36>{5,30}\.<b36>{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,120}",
      "{b36:12}.{b36:5}.acc_{b36:12}.{b62:44}", "{b36:12}.{b36:5}.acc-{b36:12}.{b62:44}")
token("ory token", "ory_at_ ory_rt_ ory_ac_ ory_pat_ ory_wak_", r"<url>{32,60}(?:\.<url>{32,60})?", "{url:43}.{url:43}",
      "{b62:32}")
token("tailscale key", "tskey-", "(?:[a-z]+-)?<b62>{8,32}-<b62>{16,50}", "auth-{b62:17}-{b62:32}")
token("defined networking key", "dnkey-", "<url>{26}-<url>{52}", "{B36:26}-{B36:52}")
named("ngrok token", "ngrok authtoken", "[12]<b62>{24,26}_<b62>{20,24}", "NGROK_AUTHTOKEN=«2{b62:26}_{b62:21}»",
      judge="shape")
named("meraki key", "meraki", "<hex>{40}", "MERAKI_DASHBOARD_API_KEY=«{hex:40}»")
token("intra42 secret", "s-s4t2ud- s-s4t2af-", "<hex>{64}", "{hex:64}")

# --- messages and mail ---
token("slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe- xoxe.xoxb- xoxe.xoxp-", r"[\w%-]{10,300}",
      "{dig:12}-{dig:13}-{b62:24}", "{dig:10}-{b62:24}", "{dig:12}-{dig:12}-{dig:12}-{hex:32}", "2-{b62:40}",
      "{dig:11}-{dig:11}-{dig:11}-{hex:10}", "1-{B36:166}", "1-{B36:147}", judge="varied")
token("slack token", "xapp-", "[0-9]-<b62>{8,14}-[0-9]{8,16}-<b62>{20,100}", "1-A{B36:10}-{dig:13}-{hex:64}")
place("webhook url", "://hooks.slack.com/",
      r"(?i:://hooks\.slack\.com)/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{36,80})",
       "https://hooks.slack.com/services/«T{B36:8}/B{B36:10}/{b62:24}»")
place("webhook url", "://",
      r"://[\w.-]{1,60}webhook\.office\.com/webhookb?2?/(?P<secret>[\w-]{36}@[\w-]{36}/IncomingWebhook/<b36>{32}/[\w-]"
      r"{36})",
      "https://acme.webhook.office.com/webhookb2/«{uuid}@{uuid}/IncomingWebhook/{hex:32}/{uuid}»")
place("webhook url", "://",
      r"://[a-z.]{0,8}discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/(?P<secret>[0-9]{16,20}/<url>{60,80})",
      "https://discord.com/api/webhooks/«{dig:18}/{url:68}»")
named("discord token", "discord bot token", r"[MNO]<b62>{23,27}\.<url>{6}\.<url>{27,40}",
      "DISCORD_TOKEN=«M{b62:23}.{b62:6}.{url:38}»")
# Its first part is an id in base64: digits, so that it begins with one of these.
token("discord token", "MD MT Mj Mz ND NT Nj Nz OD OT", r"<b62>{22,26}\.<url>{6}\.<url>{27,40}(?!<url>)",
      "{b62:22}.{b62:6}.{url:38}", judge="shape")
named("discord secret", "discord", "<hex>{64}|<url>{32}", 'discord_api_token = "«{hex:64}»"',
      "DISCORD_CLIENT_SECRET=«{url:32}»", judge="shape")
named("discord client id", "discord", "[0-9]{17,19}", "DISCORD_CLIENT_ID=«{dig:18}»")
inside("telegram token", ":AA", "<begin>[0-9]{5,16}:A<url>{34}(?!<url>)", "{dig:10}:AA{url:33}", before=16)
place("telegram token", "://api.telegram.org/", "://api.telegram.org/(?:file/)?bot(?P<secret>[0-9]{5,16}:<url>{30,50})",
      "https://api.telegram.org/bot«{dig:10}:AB{url:33}»/getMe")
named("telegram token", "telegram telegr bot", "[0-9]{5,16}:A<url>{34}", "TELEGRAM_TOKEN=«{dig:10}:AB{url:33}»")
token("twilio key", "SK", "<hex>{32}", "{hex:32}")
named("twilio token", "twilio", "<hex>{32}", "TWILIO_AUTH_TOKEN=«{hex:32}»")
# Client("AC...", "..."): behind the account stands its token.
token("twilio token", "AC", r"<hex>{32}<quote>,[ \t\n]{0,8}<quote>(?P<secret><hex>{32})", '{hex:32}", "«{hex:32}»')
token("sendgrid key", "SG.", r"<url>{16,32}\.<url>{32,64}", "{url:22}.{url:43}")
token("mailgun key", "key- pubkey-", "<hex>{32}", "{hex:32}")
named("mailgun key", "mailgun", "<b36>{32}-<b36>{8}-<b36>{8}", "MAILGUN_SIGNING_KEY=«{hex:32}-{hex:8}-{hex:8}»")
named("mailchimp key", "mailchimp", "<hex>{32}-us[0-9]{1,2}", "MAILCHIMP_API_KEY=«{hex:32}-us14»")
named("mandrill key", "mandrill", "(?:md-)?<url>{22}", "MANDRILL_API_KEY=«md-{b62:22}»", judge="shape")
named("postmark token", "postmark", "<uuid>", "POSTMARK_API_TOKEN=«{uuid}»")
token("resend key", "re_", "<b62>{8}_<b62>{24}", "{b62:8}_{b62:24}")
token("brevo key", "xkeysib- xsmtpsib-", "<hex>{64}-<b62>{16}", "{hex:64}-{b62:16}")
named("messagebird key", "messagebird", "<b62>{25}|<uuid>", "MESSAGEBIRD_API_KEY=«{b62:25}»",
      'messagebird_client = "«{uuid}»"', judge="shape")
named("mattermost token", "mattermost", "<b36>{26}", "MATTERMOST_TOKEN=«{b36:26}»", judge="shape")
named("gitter token", "gitter", "<url>{40}", "GITTER_TOKEN=«{hex:40}»", judge="shape")
named("sendbird token", "sendbird", "<hex>{40}|<uuid>", "SENDBIRD_TOKEN=«{hex:40}»", "sendbird_app_id = «{uuid}»")
named("intercom key", "intercom", r"[\w=-]{60}", "INTERCOM_TOKEN=«{url:60}»", judge="shape")
named("zendesk key", "zendesk", "<b62>{40}", "ZENDESK_API_TOKEN=«{b62:40}»", judge="shape")
token("hubspot token", "pat-na1- pat-na2- pat-eu1-", "<uuid>", "{uuid}")
named("hubspot key", "hubspot hapikey", "<uuid>", "HUBSPOT_API_KEY=«{UUID}»")
token("salesforce token", "00D", r"<b62>{12,15}!AQ[\w.]{60,160}", "{b62:12}!AQ{b62:94}")
token("zoho token", "1000.", r"<hex>{32}\.<hex>{32}", "{hex:32}.{hex:32}")

# --- models ---
token("anthropic key", "sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-ort01- sk-ant-sid01- sk-ant-sid02-",
      "<url>{40,140}", "{url:93}AA")
token("openai key", "sk-proj- sk-svcacct- sk-admin- sk-None-", "<url>{40,200}", "{url:74}T3BlbkFJ{url:74}",
      "{url:58}T3BlbkFJ{url:58}")
token("openai key", "sk-", "<b62>{20}T3BlbkFJ<b62>{20}", "{b62:20}T3BlbkFJ{b62:20}")
token("openrouter key", "sk-or-v1- sk-or-", "<hex>{64}", "{hex:64}")
token("langfuse key", "sk-lf-", "<uuid>", "{uuid}")
token("api key", "sk-", "<url>{20,200}", "{hex:32}", "{b62:48}", judge="shape")
token("groq key", "gsk_", "<b62>{40,60}", "{b62:52}")
token("xai key", "xai-", "<b62>{60,90}", "{b62:80}")
token("replicate token", "r8_", "<b62>{37}", "{b62:37}")
token("perplexity key", "pplx-", "<b62>{48}", "{b62:48}")
token("hugging face token", "hf_ api_org_", "<b62>{34}", "{alpha:34}")
named("cohere key", "cohere coapi", "<b62>{40}", "COHERE_API_KEY=«{b62:40}»", "CO_API_KEY=«{b62:40}»", judge="shape")
named("mistral key", "mistral codestral", "<b62>{32}", "MISTRAL_API_KEY=«{b62:32}»", judge="shape")
named("together key", "together togetherai", "<hex>{64}", "TOGETHER_API_KEY=«{hex:64}»")
token("fireworks key", "fw_", "<b62>{22,24}", "{b62:24}", judge="shape")
token("langsmith key", "lsv2_pt_ lsv2_sk_", "<hex>{32}_<hex>{10}", "{hex:32}_{hex:10}")
named("wandb key", "wandb weightsandbiases", "<hex>{40}", "WANDB_API_KEY=«{hex:40}»")
token("tavily key", "tvly-", "(?:dev-|prod-)?<b62>{32}", "{b62:32}")
token("pinecone key", "pcsk_", "<b62>{5,6}_<b62>{60,64}", "{b62:6}_{b62:63}")
token("nvidia key", "nvapi-", "<url>{60,70}", "{url:64}")
token("elevenlabs key", "sk_", "<hex>{48}", "{hex:48}")
token("jina key", "jina_", "<hex>{32}<url>{28}", "{hex:32}{url:28}")
token("voyage key", "pa-", "<url>{43}", "{url:43}", judge="shape")
token("firecrawl key", "fc-", "<hex>{32}", "{hex:32}")
token("e2b key", "e2b_", "<hex>{40}", "{hex:40}")
token("runpod key", "rpa_", "<B36>{38,50}", "{B36:44}")
named("deepgram key", "deepgram", "<hex>{40}", "DEEPGRAM_API_KEY=«{hex:40}»")
named("api key", "elevenlabs assemblyai stability openai gemini deepseek brave serper serpapi exa",
      "<hex>{32,64}|<uuid>|BSA<url>{24,30}", "ELEVENLABS_API_KEY=«{hex:32}»", "EXA_API_KEY=«{uuid}»",
      "BRAVE_API_KEY=«BSA{url:27}»", judge="shape")
named("private ai key", "privateai", "<b36>{32}", "PRIVATE_AI_KEY=«{hex:32}»", judge="shape")

# --- watching and measuring ---
named("datadog key", "datadog ddapi ddapp", "<b62>{40}|<hex>{32}", "DD_APP_KEY=«{hex:40}»",
      "DATADOG_API_KEY=«{hex:32}»", "datadog_token: «{b36:40}»", judge="shape")
token("new relic key", "NRAK- NRII- NRJS- NRAA- NRRA- NRIQ- NRSP-", r"[\w-]{19,42}", "{B36:27}", "{url:32}", "{hex:19}")
named("new relic key", "newrelic", "<hex>{36}NRAL|<b62>{64}|<hex>{40}", "NEW_RELIC_LICENSE_KEY=«{hex:36}NRAL»",
      'newRelicApiId: "«{b36:64}»"', judge="shape")
token("sentry token", "sntryu_", "<hex>{64}", "{hex:64}")
token("sentry token", "sntrys_eyJ", "<b64>{40,600}={0,2}_[A-Za-z0-9+/]{43}", "pYXQiO{b62:180}_{b64:43}")
named("sentry token", "sentry", "<hex>{64}", "SENTRY_AUTH_TOKEN=«{hex:64}»")
place("sentry dsn key", "://", r"://(?P<secret><hex>{32}(?::<hex>{32})?)@[\w.-]{0,60}sentry",
      "https://«{hex:32}»@o12345.ingest.sentry.io/42")
token("grafana token", "glc_", "<b64>{32,400}={0,3}", "eyJ{b62:120}==")
token("grafana token", "glsa_", "<b62>{32}_[A-Fa-f0-9]{8}", "{b62:32}_{hex:8}")
token("dynatrace token", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", r"<b62>{16,24}\.<b62>{60,66}", "{B36:24}.{B36:64}")
token("honeycomb key", "hcaik_ hcbik_ hcxik_ hcxmk_ hcalk_", "<b36>{50,64}", "01{b36:56}")
token("posthog key", "phx_ phs_", "<url>{40,60}", "{b62:43}")
named("sumo logic key", "sumo sumologic", "su<b62>{12}|<b62>{64}", "SUMOLOGIC_ACCESS_ID=«su{b62:12}»",
      'sumo_access_key = "«{b62:64}»"', judge="shape")
named("splunk token", "splunk hec", "<uuid>", "SPLUNK_HEC_TOKEN=«{uuid}»")
named("pagerduty key", "pagerduty", r"[\w+-]{20}", "PAGERDUTY_TOKEN=«u+{b62:18}»", judge="shape")
named("rollbar token", "rollbar bugsnag honeybadger", "<hex>{32}", "ROLLBAR_ACCESS_TOKEN=«{hex:32}»")
named("elastic key", "elastic elasticsearch elasticcloud", "[A-Za-z0-9+/]{56,60}={0,2}", "ELASTIC_API_KEY=«{b62:58}==»",
      judge="shape")
named("beamer token", "beamer", r"b_[\w=-]{44}", "BEAMER_API_KEY=«b_{url:44}»", judge="shape")
named("segment key", "segment", "<b62>{32}", "SEGMENT_WRITE_KEY=«{b62:32}»", judge="shape")

# --- work, documents, design ---
token("atlassian token", "ATATT3", r"[\w=-]{100,250}", "{url:186}")
named("atlassian token", "atlassian jira confluence", "<b62>{20}<hex>{4}", "JIRA_API_TOKEN=«{b62:20}{hex:4}»",
      judge="shape")
token("notion token", "ntn_", "<b62>{40,50}", "{dig:11}{b62:35}")
token("notion token", "secret_", "<b62>{43}", "{b62:43}", judge="shape")
token("linear key", "lin_api_ lin_oauth_", "<b62>{40,64}", "{b62:40}", "{hex:64}")
named("linear secret", "linear", "<hex>{32}", "LINEAR_CLIENT_SECRET=«{hex:32}»")
named("asana token", "asana", "[0-9]/[0-9]{16}(?:/[0-9]{16})?:<hex>{32}", "ASANA_ACCESS_TOKEN=«1/{dig:16}:{hex:32}»")
named("asana client id", "asana", "[0-9]{16}", "ASANA_CLIENT_ID=«{dig:16}»")
named("asana secret", "asana", "<b62>{32}", "ASANA_CLIENT_SECRET=«{b36:32}»", judge="shape")
named("trello key", "trello", "ATTA<hex>{72}|<hex>{64}|<hex>{32}", "TRELLO_API_KEY=«{hex:32}»",
      "TRELLO_TOKEN=«ATTA{hex:72}»")
token("clickup token", "pk_", r"[0-9]{6,12}_<B36>{32}(?!\w)", "{dig:8}_{B36:32}")
token("figma token", "figd_ figu_ figo_", "<url>{38,46}", "{url:40}")
token("airtable token", "pat", r"<b62>{14}\.<hex>{64}", "{b62:14}.{hex:64}")
named("airtable key", "airtable", "(?:key)?<b62>{14,17}", "AIRTABLE_API_KEY=«key{b62:14}»", judge="shape")
token("postman key", "PMAK-", "<hex>{24}-<hex>{34}", "{hex:24}-{hex:34}")
named("rapidapi key", "rapidapi", "<url>{50}", "X-RapidAPI-Key: «{b62:50}»", judge="shape")
token("readme key", "rdme_", "<b36>{60,75}", "{b36:70}")
token("typeform token", "tfp_", r"[\w.=-]{40,60}", "{url:59}")
token("contentful token", "CFPAT-", "<url>{40,50}", "{url:43}")
named("contentful token", "contentful", r"[\w=-]{43}", "CONTENTFUL_ACCESS_TOKEN=«{url:43}»", judge="shape")
token("frame.io token", "fio-u-", r"[\w=-]{60,70}", "{url:64}")
token("adobe secret", "p8e-", "<b62>{32}", "{b62:32}")
named("adobe client id", "adobe", "<hex>{32}", "ADOBE_CLIENT_ID=«{hex:32}»")
token("adafruit key", "aio_", "<b62>{28}", "{b62:28}")
named("adafruit key", "adafruit", "<url>{32}", 'ADAFRUIT_IO_KEY="«{hex:32}»"', judge="shape")
named("looker secret", "looker", "<b62>{20}|<b62>{24}", 'looker_client_id = "«{b62:20}»"',
      "looker_client_secret: «{b62:24}»", judge="shape")
named("squarespace token", "squarespace", "<uuid>", "SQUARESPACE_TOKEN=«{uuid}»")
token("settlemint token", "sm_pat_ sm_aat_ sm_sat_", "<b62>{16}", "{b62:16}")
token("laravel app key", "base64:", "[A-Za-z0-9+/]{43}=", "{b64:43}=")
place("wordpress salt", "define('", r"(?i:define)\('\w{1,60}_(?:KEY|SALT)',\s{1,20}'(?P<secret>[^'\n]{60,70})'",
      "define('AUTH_KEY',         '«{b62:30}|%(&{b62:30}»');")

# --- data stores ---
token("databricks token", "dapi", "<hex>{32}(?:-[0-9])?", "{hex:32}", "{hex:32}-2")
token("planetscale token", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w=.-]{32,64}", "{url:43}")
token("neon key", "napi_", "<b36>{60,70}", "{b36:64}")
token("mongodb atlas secret", "mdb_sa_sk_", "<url>{40}", "{url:40}")
token("aiven password", "AVNS_", "<url>{18,24}", "{url:19}")
named("clickhouse key", "clickhouse keysecret *secret *key *token", "4b1d<b62>{38}",
      "CLICKHOUSE_CLOUD_KEY=«4b1d{b62:38}»", judge="shape")
named("confluent secret", "confluent kafka", "[A-Z0-9]{16}|<b64>{64}", "CONFLUENT_API_KEY=«{B36:16}»",
      'confluent_secret: "«{b62:64}»"', judge="shape")
named("algolia key", "algolia", "<b36>{32}", "ALGOLIA_ADMIN_KEY=«{hex:32}»", judge="shape")
named("snowflake secret", "snowflake", "<b62>{30,64}", "SNOWFLAKE_TOKEN=«{b62:40}»", judge="shape")

# --- shops and money ---
token("stripe key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", "<b62>{16,250}", "{b62:24}", "{b62:99}",
      "51{b62:97}")
token("stripe webhook secret", "whsec_", "<b64>{24,64}={0,2}", "{b62:32}")
token("square token", "sq0atp- sq0csp-", "<url>{22,60}", "{url:22}", "{url:43}")
token("square token", "EAAA", "<url>{22,64}", "{url:60}", judge="varied")
inside("paypal token", "access_token$", r"access_token\$(?:production|sandbox)\$<b36>{16}\$<hex>{32}",
       "access_token$production${b36:16}${hex:32}")
named("paypal secret", "paypal braintree", "<url>{80}|<hex>{32}", "PAYPAL_CLIENT_SECRET=«E{url:79}»",
      "BRAINTREE_PRIVATE_KEY=«{hex:32}»", judge="shape")
token("adyen key", "AQE", "[A-Za-z0-9]{5}<b64>{60,200}={0,2}-[A-Za-z0-9+/]{30,60}={0,2}", "{b62:5}{b64:80}-{b64:43}=")
token("shopify token", "shpat_ shpca_ shppa_ shpss_ shptka_", "[A-Fa-f0-9]{32}", "{hex:32}")
token("woocommerce key", "ck_ cs_", "<hex>{40}", "{hex:40}")
token("plaid token", "access-sandbox- access-development- access-production-", "<uuid>", "{uuid}")
named("plaid secret", "plaid", "<b62>{24}|<b62>{30}", "PLAID_CLIENT_ID=«{hex:24}»", "PLAID_SECRET=«{hex:30}»",
      judge="shape")
named("gocardless token", "gocardless", r"live_[\w=-]{40}", "GOCARDLESS_TOKEN=«live_{url:40}»", judge="shape")
token("flutterwave key", "FLWSECK_TEST- FLWPUBK_TEST- FLWSECK- FLWPUBK-", "<b36>{12,40}(?:-X)?", "{hex:32}-X",
      "{hex:12}")
named("lob key", "lob", "(?:live|test)_(?:<hex>{35}|pub_<hex>{31})", "LOB_API_KEY=«live_{hex:35}»",
      "LOB_PUB_KEY=«test_pub_{hex:31}»")
token("shippo token", "shippo_live_ shippo_test_", "<hex>{40}", "{hex:40}")
token("easypost key", "EZAK EZTK", "<b62>{54}", "{b62:54}")
token("duffel token", "duffel_test_ duffel_live_", r"[\w=-]{43}", "{url:43}")
named("etsy token", "etsy", "<b36>{24}", "ETSY_API_KEY=«{b36:24}»", judge="shape")
named("finicity token", "finicity", "<hex>{32}|<b62>{20}", "FINICITY_APP_KEY=«{hex:32}»", "finicity_secret: «{b62:20}»",
      judge="shape")
named("finnhub token", "finnhub", "<b62>{20}", "FINNHUB_TOKEN=«{b36:20}»", judge="shape")
named("freshbooks token", "freshbooks", "<b62>{64}", "FRESHBOOKS_TOKEN=«{b36:64}»", judge="shape")
named("sidekiq secret", "contribsys", "<hex>{8}:<hex>{8}", "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=«{hex:8}:{hex:8}»")
named("coinbase token", "coinbase", "<url>{64}", "COINBASE_TOKEN=«{url:64}»", judge="shape")
named("kraken key", "kraken", r"[\w/=+-]{80,90}", "KRAKEN_API_SECRET=«{b64:86}==»", judge="shape")
named("kucoin key", "kucoin", "<hex>{24}|<uuid>", "KUCOIN_API_KEY=«{hex:24}»", "KUCOIN_SECRET=«{uuid}»")
named("bittrex key", "bittrex", "<b36>{32}", "BITTREX_ACCESS_KEY=«{hex:32}»", "BITTREX_SECRET_KEY=«{b36:32}»",
      judge="shape")
named("binance key", "binance", "<b62>{64}", "BINANCE_API_SECRET=«{b62:64}»", judge="shape")
named("api key", "infura alchemy etherscan moralis", "<hex>{32}|<url>{32}|<B36>{34}", "INFURA_PROJECT_ID=«{hex:32}»",
      "ETHERSCAN_API_KEY=«{B36:34}»", judge="shape")

# --- social, media, maps ---
token("facebook token", "EAAM EAAC EAAG EAAB EAAE EAAF EAAJ EAAD EAAH EAAL", "<b62>{80,300}", "{b62:120}", "{b62:180}",
      judge="varied")
named("facebook token", "facebook fb *token", r"[0-9]{15,16}(?:\||%7C)<url>{27,40}",
      "FB_ACCESS_TOKEN=«{dig:16}|{url:27}»", judge="shape")
named("facebook secret", "facebook fb instagram", "<hex>{32}", "FACEBOOK_APP_SECRET=«{hex:32}»")
named("twitter token", "twitter x *token bearer", "A{21}[A-Za-z0-9%]{60,120}",
      "TWITTER_BEARER_TOKEN=«AAAAAAAAAAAAAAAAAAAAA{b62:90}»")
named("twitter token", "twitter", "[0-9]{15,25}-<b62>{20,40}|<b62>{50}|<b62>{45}|<b62>{25}",
      "TWITTER_ACCESS_TOKEN=«{dig:18}-{b62:40}»", 'twitter_api_secret="«{b62:50}»"', "TWITTER_ACCESS_SECRET=«{b62:45}»",
      "TWITTER_API_KEY=«{b62:25}»", judge="shape")
named("twitch token", "twitch", "(?:oauth:)?<b36>{30}", "TWITCH_TOKEN=«{b36:30}»", judge="shape")
named("linkedin secret", "linkedin", r"WPL_AP1\.<b62>{16}\.<b64>{6,8}={0,2}|<b62>{14}|<b62>{16}",
      "linked_in_client_secret=«{b62:16}»", judge="shape")
named("flickr token", "flickr", "<b62>{32}", "FLICKR_API_KEY=«{hex:32}»", judge="shape")
named("spotify secret", "spotify", "<hex>{32}", "SPOTIFY_CLIENT_SECRET=«{hex:32}»")
token("pinterest token", "pina_", "<b62>{32,120}", "{b62:80}")
named("nytimes key", "nytimes newyorktimes", "<url>{32}", "NYTIMES_API_KEY=«{b62:32}»", judge="shape")
token("dropbox token", "sl. sl.u.", "<url>{130,1500}", "{url:135}")
named("dropbox token", "dropbox", r"<b62>{11}AAAAAAAAAA[\w=-]{43}|<b62>{15}",
      "DROPBOX_TOKEN=«{b62:11}AAAAAAAAAA{url:43}»", "dropbox_app_secret=«{b36:15}»", judge="shape")
token("mapbox token", "pk.eyJ sk.eyJ tk.eyJ", r"<url>{40,200}\.<url>{20,24}", "{b62:57}.{url:22}", "{b62:80}.{url:22}")
named("mapbox token", "mapbox", r"pk\.<b36>{60}\.<b36>{22}", "MAPBOX_TOKEN=«pk.{b36:60}.{b36:22}»")
inside("maxmind key", "_mmk", r"<begin><b62>{6}_<b62>{29}_mmk(?!\w)", "{b62:6}_{b62:29}_mmk", before=36)
named("openweather key", "openweather openweathermap weatherapi", "<hex>{32}", "OPENWEATHER_API_KEY=«{hex:32}»")
token("yandex token", "AQVN", "<url>{35,38}", "{url:36}")
named("yandex token", "yandex yctoken", r"t1\.[\w-]{1,400}={0,2}\.[\w-]{86}={0,2}|YC<url>{38}",
      "YANDEX_TOKEN=«t1.{url:40}.{url:86}»", 'yandex_secret_key = "«YC{url:38}»"', judge="shape")

# --- what a place or a name tells ---
# Up to the last @ that a host stands behind; in URLs of the web and of code hosts, where a path may hold one, to the
# first.
place("url password", "://",
      r"(?P<web>(?:(?<=http|sftp|ftps)|(?<=https)|(?<=ws|ss)|(?<=ftp|ssh|git|npm|svn)))?://[^<blank>/:@<marks><>\\?#]{"
      r"0,100}:"
      r"(?![0-9]{1,5}(?:[/?#]|$))(?!(?:\*+|\.+|x{3,}|\{[^\n]{0,300}\})@|%\()"
      r"(?P<secret>(?(web)[^<blank><marks><>\\]{1,300}?|[^<blank><marks><>\\]{1,300}))@"
      r"(?=[A-Za-z0-9.\[_-]{1,253}\]?(?::[0-9]{1,5})?(?:[/?#,<marks><>\\)\]};.:]|[<blank>]|$)|\$|[{])",
      "postgres://user:«{b62:10}»@host/db", "https://x-access-token:«{b62:40}»@github.com/o/r.git",
      "redis://:«{b62:12}!»@10.0.0.1:6379/0", "mysql://root:«{b62:3}@{b62:3}:{b62:4}/{b62:2}»@db/prod", judge="url")
inside("totp secret", "otpauth://",
      r"otpauth://[^<blank><marks>\\]{0,300}?[?&](?i:secret)=(?P<secret>[A-Za-z2-7]{10,200})",
      "otpauth://totp/ACME:bob?secret=«{b32:16}»&issuer=ACME")
command("password", "curl", "-u|--user|--proxy-user",
        r"--?[a-z-]{1,10}(?:=|<space>)?<quote>?[^<blank>:<marks>\\$]{1,100}:(?![0-9]+(?![^<blank><marks>]))"
        r"(?P<secret>(?![$<{*@])[^<blank><marks>\\]{2,200}(?<![.)]))",
        "curl -s -u admin:«{b62:12}» https://example.org",
        "curl --user 'bob:«{b62:9}!»' https://example.org")
command("password", "http |https |xh ", "-a|--auth",
        r"--?a(?:uth)?(?:=|<space>)<quote>?[^<blank>:<marks>\\$]{1,100}:(?P<secret>(?![$<{*@])[^<blank><marks>\\]{2,20"
        r"0}(?<![.)]))",
        "http -a admin:«{b62:12}» https://example.org")
command("cookie", "curl", "-b|--cookie",
        r"--?[a-z]{1,6}(?:=|<space>)<quote>?[\w.-]{1,60}=(?P<secret>(?!\$)[^<blank>;<marks>\\]{8,4000}"
        r"(?:; ?[\w.-]{1,60}=[^<blank>;<marks>\\]{0,4000}){0,40}(?<![.)]))",
        'curl -b "session=«{b62:32}»" https://example.org', "curl --cookie sid=«{b62:24}» https://example.org",
        judge="varied")
place("cookie", "cookie",
      r"""(?i:cookie)\\{0,7}["']?[ \t]{0,3}[:=][ \t]{0,3}<quote>?(?P<secret>"""
      r"(?:[\w.-]{1,60}=[^<blank>;<marks>\\]{0,15}; ?){0,40}"
      r"[\w.-]{1,60}=[^<blank>;<marks>\\]{16,4000}(?:; ?[\w.-]{1,60}=[^<blank>;<marks>\\]{0,4000}){0,40}(?<![.)]))",
      "Cookie: «theme=dark; sessionid={b36:32}; csrftoken={b62:32}»",
      "Set-Cookie: «sid=s%3A{b62:32}.{b62:43}; Path=/»; HttpOnly", "-H 'cookie: «_session={b62:60}»'", judge="varied")
place("bearer token", "authorization",
      r"""(?i:authorization\\{0,7}["']?\]?[ \t]{0,3}[:=,][ \t]{0,3}<quote>?<space>?"""
      r"(?:(?:bearer|token|api-?key|key|bot|ssws|oauth|negotiate)(?:[+:=]|<space>){1,3})?)"
      r"(?P<secret>[\w.~+/-]{15,4000}[\w+/]={0,2})(?![\w(])", "Authorization: Bearer «{b62:40}»",
      r'{\"Authorization\": \"token «{hex:40}»\"}', "authorization: «{b62:32}»", judge="random")
place("basic credentials", "authorization",
      r"""(?i:authorization\\{0,7}["']?\]?[ \t]{0,3}[:=,][ \t]{0,3}<quote>?<space>?basic<space>)"""
      r"(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})", "Authorization: Basic «{b64:24}=»",
      "'authorization': 'Basic «{b64:16}»'")
place("bearer token", "bearer", r"(?i:bearer)<space>(?P<secret>[\w.~+/-]{15,4000}[\w+/]={0,2})(?![\w(])",
      "Bearer «{b62:40}»", "BEARER «{hex:64}»", "curl -H 'X: Bearer \\\n «{b62:40}»'", judge="random")
place("password", "login", r"(?i:login(?:\s|\\n){1,8}[^<blank>\\]{1,80}(?:\s|\\n){1,8}password[ ]{1,8})"
      r"(?P<secret>(?![$<{])[^<blank><marks>\\]{1,200}(?<![.)]))",
      "machine example.org login bob password «{b62:11}»")
place("password", """identified by |password '|password "|password \\""",
      r"""(?i:identified by|password) {1,8}\\{0,7}["'](?P<secret>[^"'\s\\]{4,200})(?=\\{0,7}["'])""",
      "CREATE USER bob IDENTIFIED BY '«{b62:12}!»';", "ALTER ROLE bob WITH PASSWORD '«{b62:12}»'", judge="password")
place("password", "sshpass -p|-storepass |-keypass |-passin pass:|-passout pass:|-pass pass:",
      r"(?:sshpass -p(?:=|<space>)?|-(?:store|key)pass<space>|-pass(?:in|out)? <quote>?pass:)<value>",
      "sshpass -p '«{b62:10}!»' ssh host", "sshpass -p«{b62:10};{b62:4}» ssh host",
      "keytool -list -storepass «{b62:9}»",
      "openssl rsa -in a.pem -passin pass:«{b62:9}»", judge="argument")
command("password", "login |mongo|cqlsh |rabbitmqadmin ", "-p", "-p(?:=|<space>)<value>",
        "docker login -u bob -p «{b62:12}» example.org", "docker login -u bob \\\n  -p '«{b62:6} {b62:6}»'",
        "mongo -u bob -p «{b62:12}» db", "mongosh --host x -u bob \\\n  -p '«{b62:4} {b62:6}»'",
        "cqlsh -u bob -p «{b62:12}»")
command("password", "mysql", "-p", "-p(?=[^<blank>-])<value>",
        "mysql -u root -p«{b62:12}» shop", "mysqldump -u root -p'«{b62:5};{b62:4}»' shop")
command("password", "sqlcmd |zip ", "-p", "-P<space>?<value>", "sqlcmd -S db -U sa -P «{b62:6};{b62:4}»")
command("password", "redis-cli ", "-a", "-a<space><value>", "redis-cli -h db -a «{b62:12}» ping")
command("password", "ldap", "-w", "-w<space><value>", "ldapsearch -x -D cn=admin -w «{b62:12}»")
command("password", "openssl ", "-k", "-k<space><value>", "openssl enc -aes-256-cbc -k «{b62:12}» -in a")
command("password", "smb|rpcclient |mount.cifs |winexe ", "-u|--user",
        r"(?:-U|--user)(?:=|<space>)?<quote>?[^<blank>%<marks>]{1,80}%(?P<secret>[^<blank><marks>\\]{2,200}(?<![.)]))",
        "smbclient //host/share -U bob%«{b62:9}»")
command("totp secret", "oathtool", "-b|--base32",
        r"-(?:b|-base32) [^\n|;&]{0,60}?(?<=[ <marks>\t])(?P<secret>[A-Z2-7]{16,128}|[a-z2-7]{16,128})(?![\w-])",
        "oathtool --totp -b «{b32:32}»", 'oathtool -b --totp "«{b32:16}»"')
place("password", "--password-stdin|--with-token|devops login|sudo -s",
      r"(?:echo|printf)(?:<space>-[neE]{1,3})?<space>(?P<open>\\{0,7}[\"'])?"
      r"(?P<secret>(?(open)[^\"'\n\\]{3,200}|[^<blank>\"'|\\]{3,200}))(?(open)\\{0,7}[\"'])[ \t]{0,3}\|[ \t]{0,3}"
      r"(?=[^\n|]{0,160}(?:az devops login|--password-stdin|--with-token|sudo -S))",
      "echo «{b36:52}» | az devops login --organization https://dev.azure.com/x",
      "echo '«{b62:12}!»' | docker login -u bob --password-stdin", before=260, judge="argument")
inside("password hash", "$", r"\$(?:1|apr1)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22}|\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{"
      r"53}"
       r"|\$[56]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
       r"|\$y\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{8,86}\$[./A-Za-z0-9]{43}"
       r"|\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{1,40}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{16,120}",
       "$2b$12${b62:53}", "$apr1${b62:8}${b62:22}", "$1${b62:8}${b62:22}", "$6${b62:12}${b62:86}",
       "$argon2id$v=19$m=65536,t=3,p=4${b64:22}${b64:43}")
inside("password hash", "{SHA} {SSHA}", r"\{SS?HA\}[A-Za-z0-9+/]{26,44}={0,2}", "{SSHA}{b64:32}")
place("password", "passw|pwd|_pass|-pass",
      r"(?i:[_-]?pass(?:w(?:or)?d|phrase)?|pwd)[\w-]{0,30}\\{0,7}<mark>?\]?"
      r"(?:[ \t]{0,3}(?:=>|:=|[:=>](?![:=]))[ \t]{0,3}|[ \t]{0,3}(?:[,(]|\|\||\?\?)[ \t]{0,3}(?=\\{0,7}<mark>[^<marks>"
      r"\s\\]{0,200}[0-9!#$%&*+^]))"
      r"(?P<open>\\{0,7}<mark>)?"
      r"(?P<secret>(?(open)[^<marks>\s\\]{4,200}(?=\\{0,7}<mark>)|[^<blank><marks>\\,;<>(){}\[\]|&]{5,200}(?<![.,:;]))"
      r")",
      "password=«hunter{dig:3}»", "DB_PASSWORD: «{b62:12}!»", '"password": "«{b62:10}»"', r'{\"pwd\":\"«{b62:12}$»\"}',
      "PGPASSWORD=«{b62:9}» psql", "Server=db;User Id=sa;Password=«{b62:12}!»;Encrypt=yes",
      "config['passwd'] = '«{b62:12}»'", "DB_PASS=«{b62:9}»", judge="password")
place("password", PASSWORDS,
      r"(?i:<passwords>)(?: [^\n.;:<marks>=]{1,60}?)??(?i:[ ](?:is|was|ist|war|lautet|est|es|era|is het|è|é|jest|to|au"
      r"f)|[ ]?(?:：|は|是|为|為))"
      r"(?i:[ ](?:now|still|currently|jetzt|set to|nu|maintenant|ahora))?[ ]?:?[ \t]{0,3}"
      r"(?:(?<=[ \t：は是为為])|(?=<mark>)"
      r")<quote>?[*`]{0,3}"
      r"(?P<secret>[^<blank><marks>\\]{5,100}(?<![.,:;)*。，]))",
      "the password is «{b62:7}{dig:2}!x»", "the password for the old server is «{b62:9}{dig:1}».",
      "Das Passwort ist «{b62:7}{dig:2}», bitte", "le mot de passe est «{b62:7}{dig:2}»",
      "La contraseña es «{b62:7}{dig:2}»", "パスワードは «{b62:7}{dig:2}» です", judge="prose")
place("password", FOREIGN,
      r"(?i:<foreign>)(?:\*\*|__)?[ ]?[:：=](?:\*\*|__)?[ \t]{0,3}<quote>?(?P<secret>[^<blank><marks>\\]{5,100}(?<![.,:"
      r";)*。，]))",
      "mot de passe : «{b62:7}{dig:2}»", "пароль: «{b62:9}{dig:2}»", judge="prose")
place("password", PASSWORDS,
      r"(?:(?<=and )|(?<=und )|(?<=with )|(?<=mit )|(?<= et )|(?<=avec )|(?<= y )|(?<=con )|(?<=com )|(?<= e )|(?<= en"
      r" )|(?<=, )|(?<=/ ))"
      r"(?i:<passwords>)[ \t]{1,3}<quote>?[*`]{0,3}(?P<secret>[^<blank><marks>\\]{5,100}(?<![.,:;)*。，]))",
      "log in with user admin and password «{b62:7}{dig:2}»", "user bob, Passwort «{b62:7}{dig:2}!»", judge="prose")
place("password", "credential|creds|zugangsdaten|login|log in",
      r"(?i:credentials?|creds|zugangsdaten|log ?in)(?: [^\n.;:<marks>]{1,40}?)??"
      r"(?::|(?i:[ ](?:with|as|mit|als|is|are|avec|con)))[ \t]{1,3}<quote>?[*`]{0,3}[\w.@+-]{2,60}\\{0,7}<mark>?"
      r"(?: ?[/|,:] ?| and | und | et | with )<quote>?[*`]{0,3}(?P<secret>[^<blank><marks>\\]{5,100}(?<![.,:;)*]))",
      "credentials: admin / «{b62:7}{dig:2}!»", "Zugangsdaten: bob / «{b62:8}{dig:2}»",
      "login: bob / «{b62:8}{dig:2}»", "# login with admin / «{b62:8}{dig:2}»", judge="prose")
digits("card number", "000000000000000|0000 0000",
       r"(?:(?<![\w.])|(?<=\\[nrt]))(?<![0-9][ -])(?:3[47][0-9]{2}([ -]?)[0-9]{6}\1[0-9]{5}"
       r"|(?:4[0-9]{3}|5[1-5][0-9]{2}|2[2-7][0-9]{2}|6(?:011|5[0-9]{2}|4[4-9][0-9]))([ -]?)[0-9]{4}\2[0-9]{4}\2[0-9]{4"
       r"})"
       r"(?![ .-]?[0-9])(?![A-Za-z_])", "{card:16}", "{card:4}", "{card:15}", judge="luhn")
assigned("password", "SMTP_PASS=«{b62:6}&{b62:7}»", "db.password: «{b62:5};{b62:6}»",
      '"userPassword": "«{b62:4} {b62:5}»"',
         "--password «{b62:14}»", "--passphrase=«{b62:14}#»", "--db-password \\\n    «{b62:8};{b62:6}»",
         "pw: «{b62:8}{dig:2}»")
assigned("secret", "CLIENT_SECRET=«{b62:6}|{dig:2}{b62:12}»", '"clientSecret": "«{b62:12}<{dig:2}{b62:8}»"',
         "--client-secret «{b62:32}»", "MFA_SEED=«{b32:16}»")
assigned("token", "MY_TOKEN=«{b62:9}<{b62:8}{dig:2}»", 'myToken: "«{b62:9},{b62:8}{dig:2}»"', "--token «{b62:40}»",
         "--auth-token=«{b62:20};{b62:9}»")
assigned("api key", "SERVICE_KEY=«{b62:9};{dig:2}{b62:8}»", 'serviceKey = "«{b62:9}&{dig:2}{b62:8}»"',
         '--api-key "«{hex:32}»"',
         "az storage blob list --account-key «{b62:86}==»", "'secret_key' => '«sk_{b62:25}!{b62:3}»'",
         "SECRET_KEY = '«django-insecure-{b62:24}#%^{b62:23}»'", 'SECRET_KEY = "«{b62:20}$@{b62:28}»"')
named("password", "passphrase", '[^<blank>"\'`\\\\,;<>(){}\\[\\]|&]{10,200}(?<![.,:;])', "GPG_PASSPHRASE=«{b62:18}»",
      judge="password")
named("api key",
      "*apikey *accesskey *secretkey authkey privatekey signingkey encryptionkey masterkey clientkey consumerkey appke"
      "y serverkey servicekey licensekey writekey sharedkey sessionkey deploykey adminkey accountkey subscriptionkey h"
      "mackey keybase",
      r"[\w.+/~-]{15,4096}[\w+/]={0,2}", "api_key: «{b62:32}»", "X-Api-Key: «{hex:40}»", 'SIGNING_KEY="«{b62:40}»"',
      "secret_key_base: «{hex:128}»", judge="random")
named("secret", "*secret secrets", r"[\w.+/~-]{9,4096}[\w+/]={0,2}", "client_secret=«{b62:32}»",
      'JWT_SECRET: "«{b62:40}»"', '"clientSecret": "«{hex:32}»"', judge="random")
named("token", "*token pat", r"[\w.+/~-]{15,4096}[\w+/]={0,2}", "access_token=«{b62:40}»",
      '"refreshToken":"«{b62:64}»"', "auth_token: '«{hex:40}»'", judge="random")
named("credential", "credential credentials creds auth dbpass dbpw passcode", r"[\w.+/~-]{15,4096}[\w+/]={0,2}",
      '"auth": "«{b62:40}=»"', 'credentials = "«{b62:32}»"', judge="random")


# Each keyword for a place holds one of these: a text is searched for all at once. Those with the same second character
# are a group, of at most eight.
ROOTS = (
    "pas", "sec", "ken", "key", "pw", "see", "nwo", "beg", "e-l", "://", "ne(", "kie", "zat", "bea", "ogi", "og ",
    "tif", "eds", "ede", "sen", "wac", "sda", " -s", " --", " -p", " -a", " -b", " -u", " -k", " -w",
)  # fmt: skip
AS_WORDS = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
NO_WORD = "".join(character for character in map(chr, range(128)) if not character.isalnum())
# In the names of assignments.py
NAMES = ("pass", "secret", "token", "key", "pw", "kennwort", "seed")


def columns(roots: list[str], before: str = "") -> tuple[bytes, ...]:
    """Return for each of three places the bits of the characters there: one of eight, by a root's second character.

    With `before`, these stand at the first place, and the roots behind them. Where a root ends, anything may be.
    """
    found = (bytearray(256), bytearray(256), bytearray(256))
    seconds = dict.fromkeys(root[not before] for root in roots)
    groups = {second: 1 << number % 8 for number, second in enumerate(seconds)}
    for column in found[: bool(before)]:
        for character in before:
            column[ord(character)] = 255
    for root in roots:
        bit = groups[root[not before]]
        for column, character in zip(found[bool(before) :], root):
            column[ord(character)] |= bit
    for root in roots:
        if len(root) + bool(before) < 3:
            found[2][:] = bytes([bits | groups[root[not before]] for bits in found[2]])
    return tuple(map(bytes, found))


class Tables:
    """The keywords of the rules as they are looked for, in bytes, in lower case but for those of tokens."""

    def __init__(self) -> None:
        # By a word that stands in them, and by the first characters of one that goes on behind them
        self.words: dict[bytes, list[tuple[SecretRule, bytes]]] = {}
        self.heads: dict[bytes, list[tuple[SecretRule, bytes]]] = {}
        # Those without a word
        self.inside: list[tuple[SecretRule, bytes]] = []
        self.digits: list[tuple[SecretRule, bytes]] = []
        self.names: set[bytes] = set()
        # By their root, and how far within them it is; names have no rule. And what has which group's bit, by its place
        self.roots: dict[bytes, list[tuple[SecretRule | None, bytes, int]]] = {}
        self.gates: dict[bytes, list[tuple[SecretRule, bytes]]] = {}
        # Beyond ASCII, by their last letter that is
        self.foreign: dict[str, list[tuple[SecretRule, str]]] = {}
        for rule in RULES:
            for keyword in rule.keywords:
                self._add(rule, keyword, keyword.encode("ascii", "replace"))
        for name in NAMES:
            self._add_root(None, name)
        self.columns = columns(list(ROOTS))
        self.head_columns = columns([head.decode()[:2] for head in self.heads], NO_WORD)

    def _add(self, rule: SecretRule, keyword: str, literal: bytes) -> None:
        if not keyword.isascii():
            letter = [letter for letter in keyword if not letter.isascii()][-1]
            self.foreign.setdefault(letter, []).append((rule, keyword))
        elif rule.form in ("token", "inside"):
            self._add_token(rule, keyword, literal)
        elif rule.form == "digits":
            self.digits.append((rule, literal))
        elif rule.form == "named":
            self.names.add(literal.lstrip(b"*"))
        elif rule.form == "command":
            self._add_root(rule, " " + keyword)
        elif rule.gate:
            self.gates.setdefault(rule.gate.encode(), []).append((rule, literal))
        else:
            self._add_root(rule, keyword)

    def _add_token(self, rule: SecretRule, keyword: str, literal: bytes) -> None:
        *words, last = literal.translate(AS_WORDS).split(b" ")
        word = max(words, key=len, default=b"")
        if keyword == "Q~" or not word + last:
            self.inside.append((rule, literal))
        elif word:
            self.words.setdefault(word, []).append((rule, literal))
        else:
            self.heads.setdefault(last[:3], []).append((rule, literal))

    def _add_root(self, rule: SecretRule | None, keyword: str) -> None:
        root = next(root for root in ROOTS if root in keyword)
        self.roots.setdefault(root.encode(), []).append((rule, keyword.encode(), keyword.index(root)))


TABLES = Tables()
