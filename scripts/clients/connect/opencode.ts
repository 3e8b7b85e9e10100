import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  bearer,
  mcpUrl,
  memoryHeader,
  proveMcp,
  proveMemory,
  serverName,
  type Client,
} from '#scripts/clients/connect/client.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'

/** The providers whose calls go through the service, with the version path that their packages take. */
const versions = { openai: '/v1', anthropic: '/v1', google: '/v1beta' }

/** Its own providers keep their models and keys; they get another base URL and a header. */
export const opencode: Client = {
  title: 'opencode',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'opencode')
    const commented = join(folder, 'opencode.jsonc')
    return [
      {
        path: existsSync(commented) ? commented : join(folder, 'opencode.json'),
        format: jsonc,
        settings: [
          ...Object.entries(versions).flatMap(([provider, version]) => [
            { at: ['provider', provider, 'options', 'baseURL'], value: vault.baseUrl + version },
            { at: ['provider', provider, 'options', 'headers', memoryHeader], value: vault.key },
          ]),
          {
            at: ['mcp', serverName],
            value: { type: 'remote', url: mcpUrl(vault), headers: bearer(vault), oauth: false },
          },
        ],
      },
    ]
  },
  proofs: read => [
    proveMemory(
      read(0, 'provider', 'openai', 'options', 'baseURL'),
      read(0, 'provider', 'openai', 'options', 'headers'),
    ),
    proveMcp(read(0, 'mcp', serverName, 'url'), read(0, 'mcp', serverName, 'headers')),
  ],
  notes: [
    'openai, anthropic and google go through the service, with the keys that opencode has; other providers as before.',
  ],
}
