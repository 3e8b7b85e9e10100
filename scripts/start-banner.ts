import { credentialsPath, type Credentials, type FirstKeys } from '#scripts/credentials.ts'

export type StartBanner = {
  baseUrl: string
  /** The folder of the credentials file; null for a service on external databases. */
  dataDir: string | null
  /** The keys, if known; from a data folder as they were before the service was ready. */
  keys: Credentials | null
  /** A link that opens the console, once. */
  loginLink?: string | undefined
}

/**
 * The text `npm start` prints once the service is ready: its addresses, its keys on the first start, and
 * two requests to try.
 */
export function formatStartBanner({ baseUrl, dataDir, keys, loginLink }: StartBanner): string {
  const newKeys = keys !== null && !keys.base_url ? keys : null
  const key = newKeys?.memory_key ?? '<your Memory Key>'
  return `
Memory Vault is ready at ${baseUrl}

  Console     ${baseUrl}/console
${loginLink === undefined ? '' : `  Signed in   ${loginLink}\n`}  Reference   ${baseUrl}/docs
${dataDir === null ? '' : describeKeyLocation(dataDir, keys, newKeys)}
Try it:

  curl -s '${baseUrl}/v1/memory/ingest?wait=true' -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' \\
    -d '{"messages":[{"role":"user","content":"My cat is called Ada and she hates thunder."}]}'

  curl -s ${baseUrl}/v1/memory/search -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' -d '{"query":"what is the name of my cat?","limit":3}'

Ctrl-C stops it; the data stays.`
}

export const formatKeys = ({ memory_key, admin_key }: FirstKeys): string =>
  `  Memory Key  ${memory_key}\n  Admin key   ${admin_key}\n`

function describeKeyLocation(
  dataDir: string,
  keys: FirstKeys | null,
  newKeys: FirstKeys | null,
): string {
  const file = credentialsPath(dataDir)
  if (newKeys) return `${formatKeys(newKeys)}\nBoth keys are also in ${file}.\n`
  if (keys) return `\nIts keys are in ${file}.\n`
  return '\nIts keys are not stored here: npm run create-account -- --email <email> creates new ones.\n'
}
