import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'

/** As in all endpoints, an empty body counts as an empty object. */
export const emptyBody = Buffer.from('{}')

/** What is read of a request that only passes through. */
export const emptyRequest: ProxyRequest = {
  model: undefined,
  stream: false,
  switches: {},
  typedFields: {},
  turns: [],
  newMessages: [],
  aside: undefined,
  isFirst: false,
  leftOut: [],
  words: '',
  userTurn: undefined,
  earlierTurns: [],
  storeVerbatim: () => {},
  readAhead: async () => {},
  forgetTexts: () => {},
  serialize: () => emptyBody,
  splicesOf: () => ({ inserted: [], removed: [], receivedBytes: 0 }),
  reusableBytes: () => 0,
}
