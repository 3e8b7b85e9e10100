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
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'

/** A base URL and headers are variables, which it reads from `.env` in its folder. */
export const gemini: Client = {
  title: 'Gemini CLI',
  files(vault, { env, home, configDir }) {
    const folder = configDir ?? join(env.GEMINI_CLI_HOME ?? home, '.gemini')
    return [
      {
        path: join(folder, '.env'),
        format: dotenv,
        settings: [
          { at: ['GOOGLE_GEMINI_BASE_URL'], value: vault.baseUrl },
          {
            at: ['GEMINI_CLI_CUSTOM_HEADERS'],
            value: withHeader(memoryHeader, vault.key, ','),
          },
        ],
      },
      {
        path: join(folder, 'settings.json'),
        format: jsonc,
        settings: [
          { at: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' },
          {
            at: ['mcpServers', serverName],
            value: { httpUrl: mcpUrl(vault), headers: bearer(vault) },
          },
        ],
      },
    ]
  },
  proofs: read => [
    proveMemory(
      read(0, 'GOOGLE_GEMINI_BASE_URL'),
      readHeader(read(0, 'GEMINI_CLI_CUSTOM_HEADERS'), memoryHeader, ','),
    ),
    proveMcp(
      read(1, 'mcpServers', serverName, 'httpUrl'),
      read(1, 'mcpServers', serverName, 'headers'),
    ),
  ],
  notes: [
    'Gemini CLI takes the key of Google from GEMINI_API_KEY; with a login of Google it does not use a base URL.',
    'A .env in the folder of a project is read in place of this one: put the two lines there too.',
  ],
}
