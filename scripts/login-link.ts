import type { ServiceConnection } from '#scripts/service-connection.ts'

/** A link that opens the console with a Memory Key, once, within an hour; undefined where the service gives none. */
export async function makeLoginLink({
  baseUrl,
  key,
}: ServiceConnection): Promise<string | undefined> {
  try {
    const response = await fetch(`${baseUrl}/console/login/links`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(5_000),
    })
    const { path } = (await response.json()) as { path?: string }
    return path && `${baseUrl}${path}`
  } catch {
    return undefined
  }
}
