import type { Credential } from '#api/contract/document.ts'

/** Groups of endpoints, in reading order. */
export const tags = [
  { name: 'Start here', description: 'The five calls that most products need.' },
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
  { name: 'Operator', description: 'All tenants, their usage and their work; the queues.' },
  { name: 'Service', description: 'Is it there, and what does it serve.' },
]

/** The first pattern that a path matches names its tag. */
const tagByPath: [RegExp, string][] = [
  [/^\/v1\/memory\/(consolidate|inspect)/, 'Consolidation'],
  [/^\/v1\/memory\/(transfer|graft|reembed)/, 'Copies'],
  [/^\/v1\/memory/, 'Memory'],
  [/^\/v1\/orgs/, 'Organizations'],
  [/^\/v1\/(account|applications|keys|webhooks)/, 'Account'],
  [/^\/v1\/operations/, 'Operations'],
  [/^\/v1\/operator/, 'Operator'],
  [/^\/v1\/shares/, 'Organizations'],
  [/^\/v1\/receipts/, 'Account'],
  [/^\/v1\/traces/, 'Traces'],
  [/^\/v1/, 'Models'],
]

/** What a newcomer calls first, in this order: the group "Start here", and the first of their own groups. */
const firstOperations = ['ingest', 'search', 'prepare', 'chat', 'createKey']

/** Orders endpoints for a reader; those that are not named keep the order of the tables. */
export const byReadingOrder = (one: { operation: string }, other: { operation: string }): number =>
  placeOf(one.operation) - placeOf(other.operation)

const placeOf = (operation: string): number =>
  firstOperations.indexOf(operation) + 1 || firstOperations.length + 1

/** The groups of an endpoint: "Start here" for the first calls, and that of its path. */
export const tagsOf = ({ operation, path }: { operation: string; path: string }): string[] => [
  ...(firstOperations.includes(operation) ? ['Start here'] : []),
  tagByPath.find(([pattern]) => pattern.test(path))?.[1] ?? 'Service',
]

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

/** What a refusal of our own endpoints says, as it is sent. */
export const refusalExamples: Record<number, { error: string; hint?: string }> = {
  400: { error: 'unknown field qeury', hint: 'did you mean query?' },
  401: { error: 'No Memory Key was sent', hint: 'Send it as Authorization: Bearer mk_…' },
  403: { error: 'This key only reads', hint: 'Use the key without the suffix :read' },
  404: { error: 'There is no memory of this id' },
  409: { error: 'A request with this Idempotency-Key is still running' },
  413: { error: 'The body is larger than 2 MiB' },
  415: { error: 'The content type is not read', hint: 'Send application/json' },
  429: { error: 'Too many requests', hint: 'Try again after Retry-After seconds' },
  503: { error: 'The database is out of reach', hint: 'Try again after Retry-After seconds' },
}
