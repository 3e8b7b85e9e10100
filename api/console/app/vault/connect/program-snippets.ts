import type {
  ConnectedClient,
  Place,
  Snippet,
} from '#api/console/app/vault/connect/sdk-snippets.ts'

const jsonFile = (file: string, value: object): Snippet => ({
  file,
  text: JSON.stringify(value, null, 2),
})
const bearer = ({ key }: Place) => ({ Authorization: `Bearer ${key}` })

const providerKey = 'The key of the model provider has to be stored on the account, under Keys.'

const yamlLines = (lines: string[], indent: number): string =>
  lines.map(line => `${' '.repeat(indent)}${line}\n`).join('')

function librechatYaml({ rights }: Place): string {
  const user = rights === 'users' ? ['X-Memory-User: "{{LIBRECHAT_USER_ID}}"'] : []
  const session = ['X-Session-ID: "{{LIBRECHAT_BODY_CONVERSATIONID}}"', 'X-Memory-Sessions: core']
  return `endpoints:
  custom:
    - name: Memory
      baseURL: "\${MEMORY_VAULT_URL}/v1"
      apiKey: "\${MEMORY_VAULT_KEY}"
      models: { default: [openai/gpt-4o-mini], fetch: true }
      titleConvo: true
      headers:
${yamlLines([...user, ...session], 8)}mcpServers:
  memory:
    type: streamable-http
    url: "\${MEMORY_VAULT_URL}/mcp"
    headers:
${yamlLines([`Authorization: "Bearer \${MEMORY_VAULT_KEY}"`, ...user], 6)}`
}

/** A callback names the owner of a virtual key: headers that are forwarded could name anyone. */
const litellmCallback = `from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger


class MemoryUser(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        user = user_api_key_dict.user_id
        if not user or user == "default_user_id":
            raise HTTPException(403, "This key has no user, so it has no memory: give it a user_id")
        sent = data.get("extra_headers") or {}
        own = {name: value for name, value in sent.items() if not name.lower().startswith("x-memory-user")}
        data["extra_headers"] = {**own, "X-Memory-User": user}
        return data


memory_user = MemoryUser()
`

function litellmYaml({ url, key, rights }: Place): string {
  return `model_list:
  - model_name: gpt-4o-mini
    litellm_params:
      model: openai/gpt-4o-mini
      api_base: ${url}/v1
      api_key: ${key}
${rights === 'users' ? 'litellm_settings:\n  callbacks: memory_user.memory_user\n' : ''}`
}

/** Programs, by the name in the address of the page; the files are those that `npm run connect` writes. */
export const programSnippets: Record<string, ConnectedClient> = {
  'claude-code': {
    name: 'Claude Code',
    kind: 'Programs',
    snippets: place => [
      jsonFile('~/.claude/settings.json', {
        env: {
          ANTHROPIC_BASE_URL: place.url,
          ANTHROPIC_CUSTOM_HEADERS: `X-Memory-Key: ${place.key}`,
        },
      }),
      jsonFile('~/.claude.json', {
        mcpServers: { memory: { type: 'http', url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: [
      'Close Claude Code first: it writes .claude.json itself.',
      'Your login or ANTHROPIC_API_KEY stays as it is.',
    ],
  },
  codex: {
    name: 'Codex',
    kind: 'Programs',
    snippets: ({ url, key }) => [
      {
        file: '~/.codex/config.toml',
        text: `model_provider = "vault"

[model_providers.vault]
name = "OpenAI with memory"
base_url = "${url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
http_headers = { X-Memory-Key = "${key}" }

[mcp_servers.memory]
url = "${url}/mcp"
http_headers = { Authorization = "Bearer ${key}" }`,
      },
    ],
    notes: ['Codex takes the key of OpenAI from OPENAI_API_KEY.'],
  },
  'gemini-cli': {
    name: 'Gemini CLI',
    kind: 'Programs',
    snippets: place => [
      {
        file: '~/.gemini/.env',
        text: `GOOGLE_GEMINI_BASE_URL=${place.url}
GEMINI_CLI_CUSTOM_HEADERS='X-Memory-Key: ${place.key}'`,
      },
      jsonFile('~/.gemini/settings.json', {
        security: { auth: { selectedType: 'gemini-api-key' } },
        mcpServers: { memory: { httpUrl: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: ['Gemini CLI takes the key of Google from GEMINI_API_KEY.'],
  },
  opencode: {
    name: 'opencode',
    kind: 'Programs',
    snippets: place => [
      jsonFile('~/.config/opencode/opencode.json', {
        provider: Object.fromEntries(
          Object.entries({ openai: '/v1', anthropic: '/v1', google: '/v1beta' }).map(
            ([provider, version]) => [
              provider,
              {
                options: {
                  baseURL: place.url + version,
                  headers: { 'X-Memory-Key': place.key },
                },
              },
            ],
          ),
        ),
        mcp: {
          memory: {
            type: 'remote',
            url: `${place.url}/mcp`,
            headers: bearer(place),
            oauth: false,
          },
        },
      }),
    ],
    notes: ['The keys that opencode has are used as before.'],
  },
  cursor: {
    name: 'Cursor',
    kind: 'MCP',
    snippets: place => [
      jsonFile('~/.cursor/mcp.json', {
        mcpServers: { memory: { url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: ['This adds the tools of memory. The model calls of Cursor stay as they are.'],
  },
  vscode: {
    name: 'VS Code',
    kind: 'MCP',
    snippets: place => [
      jsonFile('mcp.json of your profile', {
        servers: { memory: { type: 'http', url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: [
      'Settings Sync copies mcp.json with the key in it, unless MCP servers are left out of it.',
    ],
  },
  'open-webui': {
    name: 'Open WebUI',
    kind: 'Programs',
    users: 'named',
    snippets: place => [
      {
        file: '.env next to its compose file',
        text: `ENABLE_OPENAI_API=true
OPENAI_API_BASE_URLS=${place.url}/v1
OPENAI_API_KEYS=${place.key}${
          place.rights === 'users'
            ? `
ENABLE_FORWARD_USER_INFO_HEADERS=true
FORWARD_USER_INFO_HEADER_USER_ID=X-Memory-User`
            : ''
        }`,
      },
    ],
    notes: [
      providerKey,
      'Open WebUI reads these when it starts for the first time, afterwards only with ENABLE_PERSISTENT_CONFIG=False.',
    ],
  },
  librechat: {
    name: 'LibreChat',
    kind: 'Programs',
    users: 'named',
    snippets: place => [
      { file: '.env', text: `MEMORY_VAULT_URL=${place.url}\nMEMORY_VAULT_KEY=${place.key}` },
      { file: 'librechat.yaml', text: librechatYaml(place) },
    ],
    notes: [providerKey],
  },
  litellm: {
    name: 'LiteLLM in front',
    kind: 'Programs',
    users: 'named',
    snippets: place => [
      { file: 'config.yaml of its proxy', text: litellmYaml(place) },
      ...(place.rights === 'users'
        ? [{ file: 'memory_user.py beside it', text: litellmCallback }]
        : []),
    ],
    notes: [
      providerKey,
      'The user is the owner of the virtual key of LiteLLM; a key without one is refused. Leave forward_client_headers_to_llm_api off: a client could name anyone.',
    ],
  },
  anythingllm: {
    name: 'AnythingLLM',
    kind: 'Programs',
    users: 'unnamed',
    snippets: ({ url, key }) => [
      {
        file: '.env, or Settings, LLM, Generic OpenAI',
        text: `LLM_PROVIDER=generic-openai
GENERIC_OPEN_AI_BASE_PATH=${url}/v1
GENERIC_OPEN_AI_API_KEY=${key}
GENERIC_OPEN_AI_MODEL_PREF=openai/gpt-4o-mini`,
      },
    ],
    notes: [
      providerKey,
      'It sends nothing of its user to such a provider: one instance is for one person.',
    ],
  },
  mcp: {
    name: 'Any MCP client',
    kind: 'MCP',
    snippets: place => [
      jsonFile('Streamable HTTP', {
        mcpServers: { memory: { url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: ['A key that ends in :read offers only the tools that read.'],
  },
}
