import type { Credential } from '#api/contract/document.ts'

/** Groups of endpoints, in reading order. */
export const tags = [
  { name: 'Memory', description: 'Storing and finding what a vault remembers.' },
  { name: 'Consolidation', description: 'Turning memories into reflections, batch by batch.' },
  { name: 'Copies', description: 'From one vault into another, or into another vector space.' },
  { name: 'Models', description: 'Calls to model providers, with memory around them or without.' },
  { name: 'Account', description: 'Keys, provider keys, usage, policy, webhooks and events.' },
  { name: 'Operations', description: 'Queued work: its state, progress and outcome.' },
  {
    name: 'Organizations',
    description: 'Shared team memory: members, roles, tags, audit, review.',
  },
  { name: 'Operator', description: 'All tenants, their usage and their work.' },
  { name: 'Service', description: 'Is it there, and what does it serve.' },
]

/** The first pattern that a path matches names its tag. */
const tagByPath: [RegExp, string][] = [
  [/^\/v1\/memory\/(consolidate|inspect)/, 'Consolidation'],
  [/^\/v1\/memory\/(transfer|graft|reembed)/, 'Copies'],
  [/^\/v1\/memory/, 'Memory'],
  [/^\/v1\/orgs/, 'Organizations'],
  [/^\/v1\/(account|keys|webhooks)/, 'Account'],
  [/^\/v1\/operations/, 'Operations'],
  [/^\/v1\/operator/, 'Operator'],
  [/^\/v1/, 'Models'],
]

/** The tag of the endpoints of a path. */
export const tagForPath = (path: string): string =>
  tagByPath.find(([pattern]) => pattern.test(path))?.[1] ?? 'Service'

const apiKey = (name: string, description: string) => ({
  type: 'apiKey',
  in: 'header',
  name,
  description,
})

export const securitySchemes = {
  memoryKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A Memory Key, `mk_…`; the suffixes `:read`, `:write` and `:off` narrow it.',
  },
  memoryKeyHeader: apiKey('X-Memory-Key', 'A Memory Key, where `Authorization` is a provider key.'),
  apiKeyHeader: apiKey('x-api-key', 'A Memory Key, as Anthropic clients send it.'),
  adminKey: { type: 'http', scheme: 'bearer', description: 'An admin credential, `mk_admin_…`.' },
  adminKeyHeader: apiKey('X-Admin-Key', 'An admin credential.'),
  dashboardKeyHeader: apiKey('X-Dashboard-Key', 'An admin credential.'),
}

const schemesByCredential: Record<Credential, (keyof typeof securitySchemes)[]> = {
  'memory-key': ['memoryKey', 'memoryKeyHeader', 'apiKeyHeader'],
  admin: ['adminKey', 'adminKeyHeader', 'dashboardKeyHeader'],
}

/** Any one of them opens the endpoint; an empty list: it is open. */
export const securityRequirements = (auth: readonly Credential[]): Record<string, string[]>[] =>
  auth.flatMap(credential => schemesByCredential[credential].map(scheme => ({ [scheme]: [] })))

const statusTexts: Record<number, string> = {
  200: 'Done',
  201: 'Created; a key in it is shown only now',
  202: 'Accepted: it will be done, and the operation tells how far it is',
  400: 'The request is not valid; the error names the field and its bound',
  401: 'No credential, an unknown one, or no key for the provider',
  402: 'No card on file, or the balance is exhausted',
  403: 'This credential may not do this',
  404: 'There is nothing of this name for this credential',
  409: 'It conflicts with what is there, or the same request is still running',
  413: 'The body is larger than this endpoint reads, or the vault larger than can be copied',
  415: 'A content type or encoding that is not read',
  429: 'Too many requests; `Retry-After` says when to try again',
  500: 'A fault of the service',
  502: 'The model provider failed',
  503: 'A database is out of reach; `Retry-After` says when to try again',
}

/** The meaning of a status, in one sentence. */
export const statusText = (status: number): string => statusTexts[status] ?? String(status)
