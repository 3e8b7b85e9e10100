import type { Endpoint } from '#api/contract/document.ts'

/** Parts of a path that are no ids. */
const fixedParams: Readonly<Record<string, string>> = {
  provider: 'openai',
  // A user that is not there.
  externalId: 'user-who-left',
  // The queue of dead jobs: none can be sent there, and what tenants have queued stays.
  queue: 'ingest.dead',
  model: 'gemini-2.5-flash',
}

/** Parameters whose ids are kept under another name. */
const kinds: Readonly<Record<string, string>> = { memoryId: 'memory' }

/** Which of its own ids a tenant names: any, one it may change, one it ends, one it keeps. */
export type IdChoice = 'any' | 'own' | 'take' | 'lasting'

/** The value of a parameter of a path: what a tenant changes or ends is nothing that it keeps. */
export const paramOf = (
  endpoint: Endpoint,
  name: string,
  idOf: (kind: string, choice: IdChoice) => string,
): string => fixedParams[name] ?? idOf(kinds[name] ?? name, idChoiceOf(endpoint, name))

function idChoiceOf({ method, path }: Endpoint, name: string): IdChoice {
  if (method === 'DELETE' && path.endsWith(`:${name}`)) return 'take'
  if (name === 'orgId' || name === 'accountId') return 'lasting'
  return method === 'GET' ? 'any' : 'own'
}

/** The path of an endpoint with a value for each parameter. */
export const fillPath = ({ path }: Endpoint, valueOf: (name: string) => string): string =>
  path.replaceAll(/(?<=\/):(\w+)/g, (_, name: string) => valueOf(name))
