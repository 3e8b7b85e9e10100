import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  memoryHeader,
  modelSettings,
  serverName,
  type Client,
  type Place,
} from '#scripts/clients/connect/client.ts'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toml } from '#scripts/clients/connect/formats/toml.ts'
import { memoryProof, toolsProof } from '#scripts/clients/connect/prove.ts'

/** Adds the header of the key to a list of `Name: value` in one text, in place of one of its name. */
const withMemoryHeader =
  (key: string, separator: string) =>
  (present: unknown): string => {
    const others = (typeof present === 'string' ? present.split(separator) : []).filter(
      line => line.trim() !== '' && !isMemoryHeader(line),
    )
    return [...others, `${memoryHeader}: ${key}`].join(separator)
  }

/** Such a list without the header of the key. */
const withoutMemoryHeader =
  (separator: string) =>
  (present: unknown): string | undefined =>
    String(present)
      .split(separator)
      .filter(line => line.trim() !== '' && !isMemoryHeader(line))
      .join(separator) || undefined

/** Reads the header of the key from such a list. */
const readMemoryHeader = (present: unknown, separator: string): Record<string, string> => {
  const line = String(present).split(separator).find(isMemoryHeader) ?? ''
  return { [memoryHeader]: line.slice(line.indexOf(':') + 1).trim() }
}

const isMemoryHeader = (line: string): boolean =>
  line.trimStart().toLowerCase().startsWith(`${memoryHeader.toLowerCase()}:`)

/** Variables of `settings.json` hold for every session; MCP servers of a user stand in `.claude.json`. */
export const claudeCode: Client = {
  title: 'Claude Code',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? env.CLAUDE_CONFIG_DIR
    const headers = withMemoryHeader(vault.key, '\n')
    const server = { type: 'http', url: mcpUrl(vault), headers: bearer(vault.key) }
    return [
      {
        path: join(folder ?? join(home, '.claude'), 'settings.json'),
        format: jsonc,
        settings: modelSettings([
          { at: ['env', 'ANTHROPIC_BASE_URL'], value: vault.baseUrl },
          {
            at: ['env', 'ANTHROPIC_CUSTOM_HEADERS'],
            value: headers,
            without: withoutMemoryHeader('\n'),
          },
        ]),
      },
      {
        path: join(folder ?? home, '.claude.json'),
        format: jsonc,
        settings: [{ at: ['mcpServers', serverName], value: server }],
      },
    ]
  },
  proofs: read => [
    memoryProof(
      read(0, 'env', 'ANTHROPIC_BASE_URL'),
      readMemoryHeader(read(0, 'env', 'ANTHROPIC_CUSTOM_HEADERS'), '\n'),
    ),
    toolsProof(read(1, 'mcpServers', serverName)),
  ],
  notes: () => [
    'Close Claude Code before you connect it: it writes .claude.json itself.',
    'Your login or ANTHROPIC_API_KEY stays as it is. A variable of the shell wins over settings.json: unset ANTHROPIC_BASE_URL there.',
  ],
}

/** Codex takes headers and a base URL for a provider of one's own only, so it gets one. */
export const codex: Client = {
  title: 'Codex',
  files(vault, { env, home, configDir }) {
    const provider = {
      name: 'OpenAI with memory',
      base_url: `${vault.baseUrl}/v1`,
      env_key: 'OPENAI_API_KEY',
      wire_api: 'responses',
      http_headers: { [memoryHeader]: vault.key },
    }
    const server = { url: mcpUrl(vault), http_headers: bearer(vault.key) }
    return [
      {
        path: join(codexFolder({ env, home, configDir }), 'config.toml'),
        format: toml,
        settings: [
          ...modelSettings([
            { at: ['model_provider'], value: 'vault' },
            { at: ['model_providers', 'vault'], value: provider },
          ]),
          { at: ['mcp_servers', serverName], value: server },
        ],
      },
    ]
  },
  whyNoModels: place =>
    hasChatGptLogin(place)
      ? 'Codex is signed in with ChatGPT, and such a login reaches no other provider: memory comes by its hooks. --memory models sends its model calls through the service too, with the key in OPENAI_API_KEY'
      : undefined,
  proofs: read => [
    memoryProof(
      read(0, 'model_providers', 'vault', 'base_url'),
      read(0, 'model_providers', 'vault', 'http_headers'),
    ),
    toolsProof(read(0, 'mcp_servers', serverName)),
  ],
  notes: () => [
    'Codex takes the key of OpenAI from OPENAI_API_KEY.',
    'Sessions of another provider are not offered by `codex resume`; they are there again after --undo.',
  ],
}

const codexFolder = ({ env, home, configDir }: Pick<Place, 'env' | 'home' | 'configDir'>): string =>
  configDir ?? env.CODEX_HOME ?? join(home, '.codex')

/** Whether Codex is signed in with ChatGPT: `auth_mode` of its `auth.json`, and in older files tokens without a key. */
function hasChatGptLogin(place: Place): boolean {
  const file = join(codexFolder(place), 'auth.json')
  if (!existsSync(file)) return false
  try {
    const auth = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown> | null
    const { auth_mode, tokens, OPENAI_API_KEY } = auth ?? {}
    return typeof auth_mode === 'string' ? auth_mode === 'chatgpt' : !!tokens && !OPENAI_API_KEY
  } catch {
    return false
  }
}

/** Gemini CLI reads a base URL and headers from `.env` in its folder. */
export const gemini: Client = {
  title: 'Gemini CLI',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? join(env.GEMINI_CLI_HOME ?? home, '.gemini')
    const headers = withMemoryHeader(vault.key, ',')
    const server = { httpUrl: mcpUrl(vault), headers: bearer(vault.key) }
    return [
      {
        path: join(folder, '.env'),
        format: dotenv,
        settings: modelSettings([
          { at: ['GOOGLE_GEMINI_BASE_URL'], value: vault.baseUrl },
          {
            at: ['GEMINI_CLI_CUSTOM_HEADERS'],
            value: headers,
            without: withoutMemoryHeader(','),
          },
        ]),
      },
      {
        path: join(folder, 'settings.json'),
        format: jsonc,
        settings: [
          ...modelSettings([{ at: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' }]),
          { at: ['mcpServers', serverName], value: server },
        ],
      },
    ]
  },
  proofs: read => [
    memoryProof(
      read(0, 'GOOGLE_GEMINI_BASE_URL'),
      readMemoryHeader(read(0, 'GEMINI_CLI_CUSTOM_HEADERS'), ','),
    ),
    toolsProof(read(1, 'mcpServers', serverName)),
  ],
  notes: () => [
    'Gemini CLI takes the key of Google from GEMINI_API_KEY; with a login of Google it does not use a base URL.',
    'A .env in the folder of a project is read in place of this one: put the two lines there too.',
  ],
}

/** Qwen Code has a provider in its settings for each model, so it gets memory by its hooks. */
export const qwen: Client = {
  title: 'Qwen Code',
  files: (vault, { env, home, configDir }) => [
    {
      path: join(configDir ?? env.QWEN_HOME ?? join(home, '.qwen'), 'settings.json'),
      format: jsonc,
      settings: [
        {
          at: ['mcpServers', serverName],
          value: { httpUrl: mcpUrl(vault), headers: bearer(vault.key) },
        },
      ],
    },
  ],
  proofs: read => [toolsProof(read(0, 'mcpServers', serverName))],
  notes: () => [
    'Qwen Code has a memory of its own beside this one: its helpers are not stored by the hooks.',
  ],
}

/** The providers whose calls go through the service, with the version path that their packages take. */
const opencodeVersions = { openai: '/v1', anthropic: '/v1', google: '/v1beta' }

/** The providers of opencode keep their models and keys; they get another base URL and a header. */
export const opencode: Client = {
  title: 'opencode',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'opencode')
    const commented = join(folder, 'opencode.jsonc')
    const server = { type: 'remote', url: mcpUrl(vault), headers: bearer(vault.key), oauth: false }
    return [
      {
        path: existsSync(commented) ? commented : join(folder, 'opencode.json'),
        format: jsonc,
        settings: [
          ...modelSettings(
            Object.entries(opencodeVersions).flatMap(([provider, version]) => [
              { at: ['provider', provider, 'options', 'baseURL'], value: vault.baseUrl + version },
              { at: ['provider', provider, 'options', 'headers', memoryHeader], value: vault.key },
            ]),
          ),
          { at: ['mcp', serverName], value: server },
        ],
      },
    ]
  },
  proofs: read => [
    memoryProof(
      read(0, 'provider', 'openai', 'options', 'baseURL'),
      read(0, 'provider', 'openai', 'options', 'headers'),
    ),
    toolsProof(read(0, 'mcp', serverName)),
  ],
  notes: () => [
    'openai, anthropic and google go through the service, with the keys that opencode has; other providers as before.',
  ],
}
