import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  proveMcp,
  serverName,
  type Client,
} from '#scripts/clients/connect/client.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'

/** Only its MCP servers stand in a file. */
export const cursor: Client = {
  title: 'Cursor',
  files: (vault, { home, configDir }) => [
    {
      path: join(configDir ?? join(home, '.cursor'), 'mcp.json'),
      format: jsonc,
      settings: [
        {
          at: ['mcpServers', serverName],
          value: { url: mcpUrl(vault), headers: bearer(vault) },
        },
      ],
    },
  ],
  proofs: read => [
    proveMcp(
      read(0, 'mcpServers', serverName, 'url'),
      read(0, 'mcpServers', serverName, 'headers'),
    ),
  ],
  notes: [
    'The model calls of Cursor are not changed: its base URL stands in its settings (Models, "Override OpenAI Base URL") and takes no header, so it wants provider keys stored on the account, the Memory Key as API key, and an address that Cursor\'s own servers reach.',
  ],
}
