import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { resolveDataDir } from '#scripts/embedded-environment.ts'

type Environment = Record<string, string | undefined>

/** The base URL of a service and a Memory Key. */
export type ServiceConnection = { baseUrl: string; key: string }

/** The connection that `npm start` saved once it was ready; undefined if it was never ready. */
export function readRunningConnection(dataDir: string): ServiceConnection | undefined {
  try {
    const { base_url, memory_key } = JSON.parse(
      readFileSync(join(dataDir, 'credentials.json'), 'utf8'),
    ) as { base_url?: string; memory_key?: string }
    return base_url && memory_key ? { baseUrl: base_url, key: memory_key } : undefined
  } catch {
    return undefined
  }
}

/**
 * The service and key that a command uses: its options, else BASE_URL and MEMORY_KEY, else the service
 * saved in DATA_DIR. The key saved in DATA_DIR is sent to that service only.
 *
 * @param faults receives a sentence for each missing or wrong value
 * @param urlOption what the command calls the option of the service's address
 */
export function resolveConnection(
  options: { 'base-url'?: string | undefined; key?: string | undefined },
  {
    env,
    faults,
    urlOption = '--base-url',
  }: { env: Environment; faults: string[]; urlOption?: string },
): ServiceConnection {
  const baseUrl = (options['base-url'] ?? env.BASE_URL ?? '').trim()
  const key = (options.key ?? env.MEMORY_KEY ?? '').trim()
  const running = baseUrl ? undefined : readRunningConnection(resolveDataDir(env))
  if (!baseUrl && !running) {
    faults.push(`no service is running on DATA_DIR: name one with ${urlOption} and --key`)
    return { baseUrl, key }
  }
  if (!isHttpUrl(running?.baseUrl ?? baseUrl)) {
    faults.push(`${urlOption} (or BASE_URL) must be the http(s) address of the service`)
  }
  if (!key && !running) faults.push('--key (or MEMORY_KEY) is missing: that of the vault')
  return {
    baseUrl: (running?.baseUrl ?? baseUrl).replace(/\/+$/, ''),
    key: key || (running?.key ?? ''),
  }
}

export const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
