import { readFileSync } from 'node:fs'

/** The version in package.json. */
export const { version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

/** The version of the API that is served: the package's own version is another. */
export const apiVersion = '2.0.0'
