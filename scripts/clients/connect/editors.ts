import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  serverName,
  type Client,
  type Place,
} from '#scripts/clients/connect/client.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toolsProof } from '#scripts/clients/connect/prove.ts'

/** Cursor keeps only its MCP servers in a file. */
export const cursor: Client = {
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
  notes: () => [
    'The model calls of Cursor are not changed: its base URL stands in its settings (Models, "Override OpenAI Base URL") and takes no header, so it wants provider keys stored on the account, the Memory Key as API key, and an address that Cursor\'s own servers reach.',
  ],
}

/** VS Code keeps the MCP servers of the default profile in a file of their own. */
export const vscode: Client = {
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
  notes: () => [
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
