import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { VaultError } from '#api/client/client.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { Refusal } from '#shared/core/errors.ts'

type Environment = Record<string, string | undefined>

/** The base URL of a service, a Memory Key, and for that of the account whose vault it opens. */
export type ServiceConnection = { baseUrl: string; key: string; user?: string }

/** The description of `--user` in the help of a command. */
export const userOptionHelp = `--user <id>          your own id of the user whose vault it is, with the key that was made with the account`

/** Names the vault of a connection in a saved position, without its key. */
export const describeVault = ({ key, user }: Pick<ServiceConnection, 'key' | 'user'>): string =>
  `${key.replace(/:.*$/, '').slice(-4)}${user === undefined ? '' : ` of ${user}`}`

/** Reads the connection that `npm start` saved once it was ready; undefined if it was never ready. */
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
 * Returns the service and key that a command uses: its options, else BASE_URL and MEMORY_KEY, else the service
 * saved in DATA_DIR. The key saved in DATA_DIR is sent to that service only.
 *
 * @param faults receives a sentence for each missing or wrong value
 * @param urlOption what the command calls the option of the service's address
 */
export function resolveConnection(
  options: {
    'base-url'?: string | undefined
    key?: string | undefined
    user?: string | undefined
  },
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
    ...(options.user !== undefined && { user: options.user }),
  }
}

export const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

/** Returns why `fetch` has failed, in the words of the system. */
export function networkFault(error: unknown): string {
  const { cause, message } = error as Error
  return (cause instanceof Error && cause.message) || message
}

/** Makes the refusal of a failed call: `upstream` with the error of the service, `unavailable` without an answer. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof VaultError) return new Refusal('upstream', error.message, error.hint)
  return new Refusal('unavailable', `No answer: ${networkFault(error)}`)
}
