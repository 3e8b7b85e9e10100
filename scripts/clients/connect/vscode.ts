import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  proveMcp,
  serverName,
  type Client,
  type Place,
} from '#scripts/clients/connect/client.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'

/** Where VS Code keeps what belongs to a user, by system. */
function userFolder({ env, home, platform }: Place): string {
  if (platform === 'darwin') return join(home, 'Library/Application Support/Code/User')
  if (platform === 'win32') return join(env.APPDATA ?? join(home, 'AppData/Roaming'), 'Code/User')
  return join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'Code/User')
}

/** The default profile; its MCP servers have a file of their own. */
export const vscode: Client = {
  title: 'VS Code',
  files: (vault, place) => [
    {
      path: join(place.configDir ?? userFolder(place), 'mcp.json'),
      format: jsonc,
      settings: [
        {
          at: ['servers', serverName],
          value: { type: 'http', url: mcpUrl(vault), headers: bearer(vault) },
        },
      ],
    },
  ],
  proofs: read => [
    proveMcp(read(0, 'servers', serverName, 'url'), read(0, 'servers', serverName, 'headers')),
  ],
  notes: [
    'Settings Sync copies mcp.json with the key in it, unless MCP servers are left out of what it syncs.',
    'Its models are not changed: add a "Custom Endpoint" under Chat: Manage Language Models, with the address of the service and the Memory Key.',
  ],
}
