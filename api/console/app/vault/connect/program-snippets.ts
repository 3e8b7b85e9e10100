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

/** Programs, by the name in the address of the page; the files are those that `npm run connect` writes. */
export const programSnippets: Record<string, ConnectedClient> = {
  'claude-code': {
    name: 'Claude Code',
    kind: 'Coding agents',
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
    kind: 'Coding agents',
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
    kind: 'Coding agents',
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
    kind: 'Coding agents',
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
    kind: 'Chat and editors',
    snippets: place => [
      jsonFile('~/.cursor/mcp.json', {
        mcpServers: { memory: { url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: ['This adds the tools of memory. The model calls of Cursor stay as they are.'],
  },
  vscode: {
    name: 'VS Code',
    kind: 'Chat and editors',
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
    kind: 'Chat and editors',
    snippets: place => [
      {
        file: '.env next to its compose file',
        text: `ENABLE_OPENAI_API=true
OPENAI_API_BASE_URLS=${place.url}/v1
OPENAI_API_KEYS=${place.key}`,
      },
    ],
    notes: [
      'The key of the model provider has to be stored on the account, under Keys.',
      'All users of this Open WebUI share the vault of this key.',
    ],
  },
  mcp: {
    name: 'Any MCP client',
    kind: 'Chat and editors',
    snippets: place => [
      jsonFile('Streamable HTTP', {
        mcpServers: { memory: { url: `${place.url}/mcp`, headers: bearer(place) } },
      }),
    ],
    notes: ['A key that ends in :read offers only the tools that read.'],
  },
}
