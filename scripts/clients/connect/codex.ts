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
import { toml } from '#scripts/clients/connect/formats/toml.ts'

/** Codex takes headers and a base URL for providers of one's own only, so it gets one. */
export const codex: Client = {
  title: 'Codex',
  files: (vault, { env, home, configDir }) => [
    {
      path: join(configDir ?? env.CODEX_HOME ?? join(home, '.codex'), 'config.toml'),
      format: toml,
      settings: [
        { at: ['model_provider'], value: 'vault' },
        {
          at: ['model_providers', 'vault'],
          value: {
            name: 'OpenAI with memory',
            base_url: `${vault.baseUrl}/v1`,
            env_key: 'OPENAI_API_KEY',
            wire_api: 'responses',
            http_headers: { [memoryHeader]: vault.key },
          },
        },
        {
          at: ['mcp_servers', serverName],
          value: { url: mcpUrl(vault), http_headers: bearer(vault) },
        },
      ],
    },
  ],
  proofs: read => [
    proveMemory(
      read(0, 'model_providers', 'vault', 'base_url'),
      read(0, 'model_providers', 'vault', 'http_headers'),
    ),
    proveMcp(
      read(0, 'mcp_servers', serverName, 'url'),
      read(0, 'mcp_servers', serverName, 'http_headers'),
    ),
  ],
  notes: [
    'Codex takes the key of OpenAI from OPENAI_API_KEY; with a ChatGPT login alone models cannot be reached this way, only the tools of memory.',
    'Sessions of another provider are not offered by `codex resume`; they are there again after --undo.',
  ],
}
