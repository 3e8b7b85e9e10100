import type { Credential } from '#api/contract/document.ts'

/** Groups of endpoints, in reading order. */
export const tags = [
  { name: 'Memory', description: 'Storing and finding what a vault remembers.' },
  { name: 'Consolidation', description: 'Turning memories into reflections, batch by batch.' },
  { name: 'Copies', description: 'From one vault into another, or into another vector space.' },
  { name: 'Models', description: 'Calls to model providers, with memory around them or without.' },
  { name: 'Traces', description: 'What model calls were told, and the bytes that they sent.' },
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
  [/^\/v1\/shares/, 'Organizations'],
  [/^\/v1\/receipts/, 'Account'],
  [/^\/v1\/traces/, 'Traces'],
  [/^\/v1/, 'Models'],
]

/** What a newcomer calls first stands first in its group. */
const firstPaths = [
  '/v1/memory/ingest',
  '/v1/memory/search',
  '/v1/memory/prepare',
  '/v1/chat/completions',
]

/** Orders endpoints for a reader; those that are not named keep the order of the tables. */
export const byReadingOrder = (one: { path: string }, other: { path: string }): number =>
  placeOf(one.path) - placeOf(other.path)

const placeOf = (path: string): number => firstPaths.indexOf(path) + 1 || firstPaths.length + 1

/** The tag of the endpoints of a path. */
export const tagForPath = (path: string): string =>
  tagByPath.find(([pattern]) => pattern.test(path))?.[1] ?? 'Service'

/** One way to authorize for each credential; the other headers that carry it stand in its description. */
export const securitySchemes: Record<Credential, Record<string, unknown>> = {
  'memory-key': {
    type: 'http',
    scheme: 'bearer',
    description:
      'A Memory Key, `mk_…`; the suffixes `:read`, `:write` and `:off` narrow it. Where ' +
      '`Authorization` holds a provider key, send it as `X-Memory-Key`; clients of Anthropic send ' +
      'it as `x-api-key`.',
  },
  admin: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An admin credential, `mk_admin_…`; `X-Admin-Key` and `X-Dashboard-Key` carry it as well.',
  },
}

/** Any one of them opens the endpoint; an empty list: it is open. */
export const securityRequirements = (auth: readonly Credential[]): Record<string, string[]>[] =>
  auth.map(credential => ({ [credential]: [] }))

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
