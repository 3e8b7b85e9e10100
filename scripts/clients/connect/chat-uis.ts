import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  memoryHeader,
  modelSettings,
  serverName,
  type Client,
  type Setting,
  type Vault,
} from '#scripts/clients/connect/client.ts'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { memoryProof, toolsProof, usersProof } from '#scripts/clients/connect/prove.ts'

/** It reads variables from a `.env` next to its compose file, or in its folder. */
export const openWebui: Client = {
  title: 'Open WebUI',
  hasUsers: true,
  files: (vault, { cwd, configDir }) => [
    {
      path: join(configDir ?? cwd, '.env'),
      format: dotenv,
      settings: [
        ...modelSettings([
          { at: ['ENABLE_OPENAI_API'], value: 'true' },
          { at: ['OPENAI_API_BASE_URLS'], value: `${vault.baseUrl}/v1` },
          { at: ['OPENAI_API_KEYS'], value: vault.key },
        ]),
        ...(vault.rights === 'users' ? forwardedUser : []),
        {
          at: ['TOOL_SERVER_CONNECTIONS'],
          value: withToolServer(vault),
          without: present => {
            const others = otherServers(present)
            return others.length > 0 ? JSON.stringify(others) : undefined
          },
        },
      ],
    },
  ],
  proofs: (read, rights) => [
    (rights === 'users' ? usersProof : memoryProof)(read(0, 'OPENAI_API_BASE_URLS'), {
      [memoryHeader]: String(read(0, 'OPENAI_API_KEYS')),
    }),
    ...parseServers(read(0, 'TOOL_SERVER_CONNECTIONS'))
      .filter(({ info }) => info?.id === serverName)
      .map(({ url, key }) => toolsProof({ url, headers: bearer(key) })),
  ],
  notes: ({ rights }) => [
    'The key of the model provider has to be stored on the account: PUT /v1/account/provider-keys/openai.',
    'Open WebUI reads OPENAI_API_… and TOOL_SERVER_CONNECTIONS when it starts for the first time, afterwards only with ENABLE_PERSISTENT_CONFIG=False; else enter the same under Admin Panel, Settings, Connections.',
    ...(rights === 'users'
      ? [
          'Open WebUI sends the id of its user in X-Memory-User, to every connection that it has. With FORWARD_USER_INFO_HEADER_JWT_SECRET it sends a token in its place: leave that unset.',
        ]
      : []),
  ],
}

/** Variables by which Open WebUI names its user, by its `env.py`; `True` and `true` are the same to it. */
const forwardedUser: Setting[] = [
  { at: ['ENABLE_FORWARD_USER_INFO_HEADERS'], value: 'true' },
  { at: ['FORWARD_USER_INFO_HEADER_USER_ID'], value: 'X-Memory-User' },
]

/** LibreChat names variables of its `.env` in `librechat.yaml`, which a person edits: the key stands in the former. */
export const librechat: Client = {
  title: 'LibreChat',
  hasUsers: true,
  files: (vault, { cwd, configDir }) => [
    {
      path: join(configDir ?? cwd, '.env'),
      format: dotenv,
      settings: [
        { at: ['MEMORY_VAULT_URL'], value: vault.baseUrl },
        { at: ['MEMORY_VAULT_KEY'], value: vault.key },
      ],
    },
  ],
  proofs: (read, rights) => {
    const headers = bearer(String(read(0, 'MEMORY_VAULT_KEY')))
    const url = String(read(0, 'MEMORY_VAULT_URL'))
    return [
      (rights === 'users' ? usersProof : memoryProof)(url, headers),
      toolsProof({ url: `${url}/mcp`, headers }),
    ]
  },
  notes: vault => [
    'The key of the model provider has to be stored on the account: PUT /v1/account/provider-keys/openai.',
    `Put this into librechat.yaml, and restart LibreChat:\n\n${librechatYaml(vault)}`,
  ],
}

/** The custom endpoint and the MCP server of `librechat.yaml`; LibreChat fills in `{{…}}` for each request. */
const librechatYaml = ({ rights, baseUrl }: Pick<Vault, 'rights' | 'baseUrl'>): string => {
  const { hostname, port, protocol } = new URL(baseUrl)
  const address = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  const user = rights === 'users' ? ['X-Memory-User: "{{LIBRECHAT_USER_ID}}"'] : []
  const session = ['X-Session-ID: "{{LIBRECHAT_BODY_CONVERSATIONID}}"', 'X-Memory-Sessions: core']
  const indent = (lines: string[], by: number) => lines.map(line => `${' '.repeat(by)}${line}\n`)
  return `endpoints:
  custom:
    - name: Memory
      baseURL: "\${MEMORY_VAULT_URL}/v1"
      apiKey: "\${MEMORY_VAULT_KEY}"
      models: { default: [openai/gpt-4o-mini], fetch: true }
      titleConvo: true
      headers:
${indent([...user, ...session], 8).join('')}mcpServers:
  memory:
    type: streamable-http
    url: "\${MEMORY_VAULT_URL}/mcp"
    headers:
${indent(['Authorization: "Bearer ${MEMORY_VAULT_KEY}"', ...user], 6).join('')}mcpSettings:
  # LibreChat asks no server at a private address that does not stand here.
  allowedAddresses: ["${address}"]
`
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
    return JSON.stringify([...otherServers(present), server])
  }

const otherServers = (present: unknown): ToolServer[] =>
  parseServers(present).filter(({ info }) => info?.id !== serverName)

function parseServers(present: unknown): ToolServer[] {
  if (typeof present !== 'string' || present === '') return []
  try {
    return JSON.parse(present) as ToolServer[]
  } catch {
    throw new FormatError('TOOL_SERVER_CONNECTIONS is not JSON')
  }
}
