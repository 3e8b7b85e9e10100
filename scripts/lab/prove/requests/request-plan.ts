import type { IdChoice } from '#scripts/lab/prove/requests/id-choice.ts'

/** What the query, headers and body of a request are made from. */
export type RequestInput = {
  /** The unique word of the tenant that sends it. */
  word: string
  /** The word of another tenant: for questions alone, since it may not be stored. */
  foreignWord: string
  /** The session of another tenant. */
  foreignSession: string
  /** An id of a kind, of the tenant or of another one; the choice is among those of the tenant. */
  id: (kind: string, choice?: IdChoice) => string
  /** Where it may copy to: the whole key of another vault of its own, or a part of another tenant's key. */
  destination: () => string
  random: () => number
  /** Address of the stand-in for everything outside. */
  origin: string
}

/** A request to one operation of the contract; its method and path are the contract's. */
export type RequestPlan = {
  query?: (input: RequestInput) => Record<string, string>
  body?: (input: RequestInput) => unknown
  headers?: (input: RequestInput) => Record<string, string>
  type?: string
  /** Ids that the tenant can name later, by kind, in an answer that was 2xx. */
  keeps?: (answer: Answer) => [kind: string, id: unknown][]
  /** Kind of what it makes: none is made where the tenant has enough. */
  makes?: string
  /** Sent with a key that the tenant made, which it ends. */
  withOwnKey?: true
  /** It reads or writes a lot: one in ten is sent. */
  isRare?: true
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers of all operations
export type Answer = any

export const note = ({ word, random }: RequestInput): string =>
  `${word} jots down ${Math.floor(random() * 1e6)} about the harbour`
export const question = ({ word, foreignWord, random }: RequestInput): string =>
  `What does ${random() < 0.5 ? word : foreignWord} know of the harbour?`
/** A session that every tenant has, and may lose. */
export const scratchSession = 'a passing session'
export const session = ({ foreignSession, random }: RequestInput): string =>
  random() < 0.5 ? scratchSession : foreignSession
export const answered = (kind: string, name: string) => (answer: Answer) =>
  [[kind, answer[name]]] as [string, unknown][]
export const listed = (kind: string, name: string, list: string) => (answer: Answer) =>
  (answer[list] as Answer[]).map(item => [kind, item[name]] as [string, unknown])
/** A list of pages: the first one, or the one after a cursor. `keeps` keeps the cursor, too. */
export const paged = (
  cursor: string,
  first: (input: RequestInput) => Record<string, string> = () => ({}),
  keeps: NonNullable<RequestPlan['keeps']> = () => [],
): RequestPlan => ({
  query: (input): Record<string, string> => {
    const kind = input.random()
    if (kind < 0.6) return first(input)
    return { limit: '1', ...(kind < 0.8 && { cursor: input.id(cursor) }) }
  },
  keeps: answer => [...keeps(answer), [cursor, answer.next_cursor]],
})
/** What tenants may change says so in its text. */
export const scratch = (items: Answer[], id: string, kind: string): [string, unknown][] =>
  items.filter(({ text }) => / jots | concludes /.test(text)).map(item => [kind, item[id]])
export const email = ({ word, random }: RequestInput): string =>
  `${word}.${Math.floor(random() * 1e6)}@example.com`

export const plain: RequestPlan = {}
export const named: RequestPlan = {
  body: ({ word, random }) => ({ name: `name ${Math.floor(random() * 1e6)} of ${word}` }),
}
export const ownQuestion = ({ word }: RequestInput): string =>
  `What does ${word} know of the harbour?`
