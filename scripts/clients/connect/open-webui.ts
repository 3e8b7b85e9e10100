import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  memoryHeader,
  proveMcp,
  proveMemory,
  serverName,
  type Client,
  type Vault,
} from '#scripts/clients/connect/client.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'

const toolServer = (vault: Vault) => ({
  type: 'mcp',
  url: mcpUrl(vault),
  path: '',
  auth_type: 'bearer',
  key: vault.key,
  config: { enable: true },
  info: { id: serverName, name: 'Memory', description: 'What was said before' },
})
type ToolServer = ReturnType<typeof toolServer>

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

/** It is configured by variables, which a `.env` beside its compose file, or in its folder, brings. */
export const openWebui: Client = {
  title: 'Open WebUI',
  files: (vault, { cwd, configDir }) => [
    {
      path: join(configDir ?? cwd, '.env'),
      format: dotenv,
      settings: [
        { at: ['ENABLE_OPENAI_API'], value: 'true' },
        { at: ['OPENAI_API_BASE_URLS'], value: `${vault.baseUrl}/v1` },
        { at: ['OPENAI_API_KEYS'], value: vault.key },
        {
          at: ['TOOL_SERVER_CONNECTIONS'],
          value: present => JSON.stringify([...otherServers(present), toolServer(vault)]),
        },
      ],
    },
  ],
  proofs: read => [
    proveMemory(read(0, 'OPENAI_API_BASE_URLS'), {
      [memoryHeader]: String(read(0, 'OPENAI_API_KEYS')),
    }),
    ...parseServers(read(0, 'TOOL_SERVER_CONNECTIONS'))
      .filter(({ info }) => info?.id === serverName)
      .map(({ url, key }) => proveMcp(url, bearer({ key }))),
  ],
  notes: [
    'The key of the model provider has to be stored on the account: PUT /v1/account/provider-keys/openai.',
    'Open WebUI reads these variables when it starts for the first time, afterwards only with ENABLE_PERSISTENT_CONFIG=False; else enter the same under Admin Panel, Settings, Connections.',
    'All users of this Open WebUI share the vault of this key.',
  ],
}
