import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import {
  FormatError,
  type FileFormat,
  type Path,
  type Value,
} from '#scripts/clients/connect/formats/file-format.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toml } from '#scripts/clients/connect/formats/toml.ts'
import { memoryProof, toolsProof, type Proof } from '#scripts/clients/connect/prove.ts'

/** Where a client keeps its configuration. */
export type Place = {
  env: Record<string, string | undefined>
  home: string
  platform: NodeJS.Platform
  /** Stands in for the client's own folder. */
  configDir: string | undefined
  /** Where the command runs. */
  cwd: string
}

/** The service and the key that a client uses; no slash at the end. */
export type Vault = { baseUrl: string; key: string }

/** A value that a file gets, or how it follows from the present one. */
export type Setting = { at: Path; value: Value | ((present: unknown) => Value) }

export type ConfigFile = { path: string; format: FileFormat; settings: Setting[] }

/** Reads a value back from a file that was written; undefined where there is none. */
type ReadBack = (file: number, ...at: string[]) => unknown

/** A program that can be connected: the files it reads and the settings they get. */
export type Client = {
  title: string
  files(vault: Vault, place: Place): ConfigFile[]
  /** Calls to the service with what stands in the files. */
  proofs(read: ReadBack): Proof[]
  /** What a person has to know or do besides. */
  notes: string[]
}

/** The header that carries a Memory Key next to a provider's own. */
const memoryHeader = 'X-Memory-Key'

/** The name that the service has in the clients' files. */
const serverName = 'memory'

const bearer = (key: string): { Authorization: string } => ({ Authorization: `Bearer ${key}` })
const mcpUrl = ({ baseUrl }: Vault): string => `${baseUrl}/mcp`

/** Adds the header of the key to a list of `Name: value` in one text, in place of one of its name. */
const withMemoryHeader =
  (key: string, separator: string) =>
  (present: unknown): string => {
    const others = (typeof present === 'string' ? present.split(separator) : []).filter(
      line => line.trim() !== '' && !isMemoryHeader(line),
    )
    return [...others, `${memoryHeader}: ${key}`].join(separator)
  }

/** Reads the header of the key from such a list. */
const readMemoryHeader = (present: unknown, separator: string): Record<string, string> => {
  const line = String(present).split(separator).find(isMemoryHeader) ?? ''
  return { [memoryHeader]: line.slice(line.indexOf(':') + 1).trim() }
}

const isMemoryHeader = (line: string): boolean =>
  line.trimStart().toLowerCase().startsWith(`${memoryHeader.toLowerCase()}:`)

/** Variables of `settings.json` hold for every session; MCP servers of a user stand in `.claude.json`. */
const claudeCode: Client = {
  title: 'Claude Code',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? env.CLAUDE_CONFIG_DIR
    const headers = withMemoryHeader(vault.key, '\n')
    const server = { type: 'http', url: mcpUrl(vault), headers: bearer(vault.key) }
    return [
      {
        path: join(folder ?? join(home, '.claude'), 'settings.json'),
        format: jsonc,
        settings: [
          { at: ['env', 'ANTHROPIC_BASE_URL'], value: vault.baseUrl },
          { at: ['env', 'ANTHROPIC_CUSTOM_HEADERS'], value: headers },
        ],
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
  notes: [
    'Close Claude Code before you connect it: it writes .claude.json itself.',
    'Your login or ANTHROPIC_API_KEY stays as it is. A variable of the shell wins over settings.json: unset ANTHROPIC_BASE_URL there.',
  ],
}

/** Codex takes headers and a base URL for a provider of one's own only, so it gets one. */
const codex: Client = {
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
        path: join(configDir ?? env.CODEX_HOME ?? join(home, '.codex'), 'config.toml'),
        format: toml,
        settings: [
          { at: ['model_provider'], value: 'vault' },
          { at: ['model_providers', 'vault'], value: provider },
          { at: ['mcp_servers', serverName], value: server },
        ],
      },
    ]
  },
  proofs: read => [
    memoryProof(
      read(0, 'model_providers', 'vault', 'base_url'),
      read(0, 'model_providers', 'vault', 'http_headers'),
    ),
    toolsProof(read(0, 'mcp_servers', serverName)),
  ],
  notes: [
    'Codex takes the key of OpenAI from OPENAI_API_KEY; with a ChatGPT login alone models cannot be reached this way, only the tools of memory.',
    'Sessions of another provider are not offered by `codex resume`; they are there again after --undo.',
  ],
}

/** Gemini CLI reads a base URL and headers from `.env` in its folder. */
const gemini: Client = {
  title: 'Gemini CLI',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? join(env.GEMINI_CLI_HOME ?? home, '.gemini')
    const headers = withMemoryHeader(vault.key, ',')
    const server = { httpUrl: mcpUrl(vault), headers: bearer(vault.key) }
    return [
      {
        path: join(folder, '.env'),
        format: dotenv,
        settings: [
          { at: ['GOOGLE_GEMINI_BASE_URL'], value: vault.baseUrl },
          { at: ['GEMINI_CLI_CUSTOM_HEADERS'], value: headers },
        ],
      },
      {
        path: join(folder, 'settings.json'),
        format: jsonc,
        settings: [
          { at: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' },
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
  notes: [
    'Gemini CLI takes the key of Google from GEMINI_API_KEY; with a login of Google it does not use a base URL.',
    'A .env in the folder of a project is read in place of this one: put the two lines there too.',
  ],
}

/** The providers whose calls go through the service, with the version path that their packages take. */
const opencodeVersions = { openai: '/v1', anthropic: '/v1', google: '/v1beta' }

/** The providers of opencode keep their models and keys; they get another base URL and a header. */
const opencode: Client = {
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
          ...Object.entries(opencodeVersions).flatMap(([provider, version]) => [
            { at: ['provider', provider, 'options', 'baseURL'], value: vault.baseUrl + version },
            { at: ['provider', provider, 'options', 'headers', memoryHeader], value: vault.key },
          ]),
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
  notes: [
    'openai, anthropic and google go through the service, with the keys that opencode has; other providers as before.',
  ],
}

/** Cursor keeps only its MCP servers in a file. */
const cursor: Client = {
  title: 'Cursor',
  files: (vault, { home, configDir }) => [
    {
      path: join(configDir ?? join(home, '.cursor'), 'mcp.json'),
      format: jsonc,
      settings: [
        {
          at: ['mcpServers', serverName],
          value: { url: mcpUrl(vault), headers: bearer(vault.key) },
        },
      ],
    },
  ],
  proofs: read => [toolsProof(read(0, 'mcpServers', serverName))],
  notes: [
    'The model calls of Cursor are not changed: its base URL stands in its settings (Models, "Override OpenAI Base URL") and takes no header, so it wants provider keys stored on the account, the Memory Key as API key, and an address that Cursor\'s own servers reach.',
  ],
}

/** VS Code keeps the MCP servers of the default profile in a file of their own. */
const vscode: Client = {
  title: 'VS Code',
  files: (vault, place) => [
    {
      path: join(place.configDir ?? vscodeFolder(place), 'mcp.json'),
      format: jsonc,
      settings: [
        {
          at: ['servers', serverName],
          value: { type: 'http', url: mcpUrl(vault), headers: bearer(vault.key) },
        },
      ],
    },
  ],
  proofs: read => [toolsProof(read(0, 'servers', serverName))],
  notes: [
    'Settings Sync copies mcp.json with the key in it, unless MCP servers are left out of what it syncs.',
    'Its models are not changed: add a "Custom Endpoint" under Chat: Manage Language Models, with the address of the service and the Memory Key.',
  ],
}

/** Returns the folder of a user's settings, by system. */
function vscodeFolder({ env, home, platform }: Place): string {
  if (platform === 'darwin') return join(home, 'Library/Application Support/Code/User')
  if (platform === 'win32') return join(env.APPDATA ?? join(home, 'AppData/Roaming'), 'Code/User')
  return join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'Code/User')
}

/** It reads variables from a `.env` next to its compose file, or in its folder. */
const openWebui: Client = {
  title: 'Open WebUI',
  files: (vault, { cwd, configDir }) => [
    {
      path: join(configDir ?? cwd, '.env'),
      format: dotenv,
      settings: [
        { at: ['ENABLE_OPENAI_API'], value: 'true' },
        { at: ['OPENAI_API_BASE_URLS'], value: `${vault.baseUrl}/v1` },
        { at: ['OPENAI_API_KEYS'], value: vault.key },
        { at: ['TOOL_SERVER_CONNECTIONS'], value: withToolServer(vault) },
      ],
    },
  ],
  proofs: read => [
    memoryProof(read(0, 'OPENAI_API_BASE_URLS'), {
      [memoryHeader]: String(read(0, 'OPENAI_API_KEYS')),
    }),
    ...parseServers(read(0, 'TOOL_SERVER_CONNECTIONS'))
      .filter(({ info }) => info?.id === serverName)
      .map(({ url, key }) => toolsProof({ url, headers: bearer(key) })),
  ],
  notes: [
    'The key of the model provider has to be stored on the account: PUT /v1/account/provider-keys/openai.',
    'Open WebUI reads these variables when it starts for the first time, afterwards only with ENABLE_PERSISTENT_CONFIG=False; else enter the same under Admin Panel, Settings, Connections.',
    'All users of this Open WebUI share the vault of this key.',
  ],
}

type ToolServer = { url: string; key: string; info?: { id?: string } }

const withToolServer =
  (vault: Vault) =>
  (present: unknown): string => {
    const server = {
      type: 'mcp',
      url: mcpUrl(vault),
      path: '',
      auth_type: 'bearer',
      key: vault.key,
      config: { enable: true },
      info: { id: serverName, name: 'Memory', description: 'What was said before' },
    }
    return JSON.stringify([
      ...parseServers(present).filter(({ info }) => info?.id !== serverName),
      server,
    ])
  }

function parseServers(present: unknown): ToolServer[] {
  if (typeof present !== 'string' || present === '') return []
  try {
    return JSON.parse(present) as ToolServer[]
  } catch {
    throw new FormatError('TOOL_SERVER_CONNECTIONS is not JSON')
  }
}

/** Every program that can be connected, by the name that the command takes. */
export const clients: Record<string, Client> = {
  'claude-code': claudeCode,
  codex,
  gemini,
  opencode,
  cursor,
  vscode,
  'open-webui': openWebui,
}
