import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  memoryHeader,
  proveMcp,
  proveMemory,
  readHeader,
  serverName,
  withHeader,
  type Client,
} from '#scripts/clients/connect/client.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'

/** Variables of `settings.json` hold for every session; MCP servers of a user stand in `.claude.json`. */
export const claudeCode: Client = {
  title: 'Claude Code',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? env.CLAUDE_CONFIG_DIR
    const headers = withHeader(memoryHeader, vault.key, '\n')
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
        settings: [
          {
            at: ['mcpServers', serverName],
            value: { type: 'http', url: mcpUrl(vault), headers: bearer(vault) },
          },
        ],
      },
    ]
  },
  proofs: read => [
    proveMemory(
      read(0, 'env', 'ANTHROPIC_BASE_URL'),
      readHeader(read(0, 'env', 'ANTHROPIC_CUSTOM_HEADERS'), memoryHeader, '\n'),
    ),
    proveMcp(
      read(1, 'mcpServers', serverName, 'url'),
      read(1, 'mcpServers', serverName, 'headers'),
    ),
  ],
  notes: [
    'Close Claude Code before you connect it: it writes .claude.json itself.',
    'Your login or ANTHROPIC_API_KEY stays as it is. A variable of the shell wins over settings.json: unset ANTHROPIC_BASE_URL there.',
  ],
}
