import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import type { ServiceClient } from '#scripts/lab/bench/ab/service-client.ts'
import type { RunningState } from '#scripts/lab/bench/ab/state.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import type { RunningProcess } from '#scripts/lab/bench/process.ts'

/** One call of a case that must succeed. */
type Call = () => Promise<unknown>

/** Makes the calls of a case for one round. */
type Round = {
  call: Call
  /** The web process that answers them, where it is not the one that always runs. */
  web?: RunningProcess
  /** Further figures of the round, such as milliseconds, and the end of what was started for it. */
  end?(): Promise<Record<string, number>>
}

export type BenchCase = {
  /** What one call is. */
  title: string
  clients: number
  /** Memories of the vault, which no other case uses. */
  memories: number
  /** Memories of further vaults of the case. */
  others?: readonly number[]
  /** Calls of a round: a second or two, where a processor has nothing else to do. */
  calls: number
  /** @param others of the further vaults */
  start(state: RunningState, client: ServiceClient, others: ServiceClient[]): Promise<Round>
}

const next = seededRandom(21)
let asked = 0

/** No two calls ask the same: equal requests at one time are stored as one turn. */
const newQuestion = (words = 40): string => `${randomSentence(words, next)} ${++asked}`

/** The seven turns before the question of a chat. */
const chat = Array.from({ length: 7 }, (_, index) => ({
  role: index % 2 === 0 ? 'assistant' : 'user',
  content: randomSentence(40, next),
}))

const modelCall = (client: ServiceClient, mode: Mode, question: () => string): Call => {
  const head = { model: 'gpt-5', memory_mode: mode }
  return () => {
    const messages = [...chat, { role: 'user', content: question() }]
    return client.post('/v1/chat/completions', JSON.stringify({ ...head, messages }))
  }
}

type Mode = 'off' | 'read' | 'on'

/** The first words of a memory: what is found is told by any state. */
const ofStored = ({ stored }: ServiceClient): string => {
  const text = stored[Math.floor(next() * stored.length)]!
  return `${text.split(' ').slice(0, 20).join(' ')} ${++asked}`
}

const proxyCase = (
  mode: Mode,
  clients: number,
  calls: number,
  memories = 2_000,
  question: (client: ServiceClient) => string = () => newQuestion(),
): BenchCase => ({
  title: `model call, memory ${mode}, ${memories.toLocaleString('en')} memories, ${clients} at once`,
  clients,
  memories,
  calls,
  async start(_, client) {
    const toldBefore = client.toldTokens
    return {
      call: modelCall(client, mode, () => question(client)),
      async end(): Promise<Record<string, number>> {
        if (mode === 'off') return {}
        return { 'tokens told a call': (client.toldTokens - toldBefore) / calls }
      },
    }
  },
})

const searchCase = (memories: number): BenchCase => ({
  title: `search of ${memories.toLocaleString('en')} memories, 4 at once`,
  clients: 4,
  memories,
  calls: 200,
  start: async (_, client) => ({ call: () => client.search(newQuestion(8)) }),
})

/** The first search of a process, and how many warm ones it takes. */
const coldCase = (memories: number): BenchCase => ({
  title: `first search of ${memories.toLocaleString('en')} memories by a web process`,
  clients: 1,
  memories,
  others: [300],
  calls: 1,
  async start(state, { key }, [small]) {
    const web = await state.startColdWeb()
    const other = state.clientOf(web, small!.key)
    const client = state.clientOf(web, key)
    // What a process compiles and connects at its first requests is no part of a vault's load.
    for (let n = 0; n < 50; n++) await other.search(newQuestion(8))
    let firstMs = 0
    return {
      web,
      async call() {
        const startedAt = performance.now()
        await client.search(newQuestion(8))
        firstMs = performance.now() - startedAt
      },
      async end() {
        const warm: number[] = []
        for (let n = 0; n < 20; n++) {
          const startedAt = performance.now()
          await client.search(newQuestion(8))
          warm.push(performance.now() - startedAt)
        }
        await Promise.all([client.close(), other.close()])
        await web.stop()
        const warmMs = warm.toSorted((one, two) => one - two)[10]!
        return { 'warm ones it takes': firstMs / warmMs }
      },
    }
  },
})

/** Vaults in turn at random, of which the cache holds a tenth. */
const rotationCase = (vaults: number, memories: number): BenchCase => ({
  title: `search of one of ${vaults} vaults of ${memories} memories, a tenth of which fit in memory`,
  clients: 2,
  memories,
  others: Array.from({ length: vaults - 1 }, () => memories),
  calls: 60,
  async start(state, client, others) {
    const bytes = (vaults / 10) * memories * 2_500
    const web = await state.startColdWeb({ INDEX_CACHE_MB: String(Math.ceil(bytes / 1e6)) })
    const clients = [client, ...others].map(({ key }) => state.clientOf(web, key))
    for (let n = 0; n < 20; n++) await clients[0]!.search(newQuestion(8))
    return {
      web,
      call: () => clients[Math.floor(next() * vaults)]!.search(newQuestion(8)),
      async end() {
        await Promise.all(clients.map(one => one.close()))
        await web.stop()
        return {}
      },
    }
  },
})

const exchange = (): string =>
  JSON.stringify({
    messages: [
      { role: 'user', content: newQuestion(25) },
      { role: 'assistant', content: newQuestion() },
    ],
  })

export const benchCases: Record<string, BenchCase> = {
  off: proxyCase('off', 16, 1_200, 0),
  'off-1': proxyCase('off', 1, 600, 0),
  read: proxyCase('read', 16, 160),
  'read-1': proxyCase('read', 1, 80),
  told: {
    ...proxyCase('read', 16, 160, 2_000, ofStored),
    title: 'model call, memory read, with the words of one of 2,000 memories, 16 at once',
  },
  'read-20000': proxyCase('read', 16, 160, 20_000),
  store: proxyCase('on', 16, 160),
  'store-1': proxyCase('on', 1, 60),
  search: searchCase(2_000),
  'search-10000': searchCase(10_000),
  cold: coldCase(1_000),
  'cold-10000': coldCase(10_000),
  rotation: rotationCase(20, 500),
  accept: {
    title: 'exchange accepted and stored, 16 at once',
    clients: 16,
    memories: 0,
    calls: 300,
    start: async (_, client) => ({ call: () => client.post('/v1/memory/ingest', exchange()) }),
  },
  found: {
    title: 'exchange accepted, and searched for until it is found',
    clients: 1,
    memories: 2_000,
    calls: 12,
    async start(_, client) {
      return {
        async call() {
          const content = newQuestion(25)
          const body = JSON.stringify({ messages: [{ role: 'user', content }] })
          await client.post('/v1/memory/ingest', body)
          while (!(await client.search(content, 1)).includes(content));
        },
      }
    },
  },
  upload: {
    title: 'file of 1,000 lines, stored',
    clients: 1,
    memories: 0,
    calls: 2,
    start: async (_, client) => ({ call: () => client.fill(1_000) }),
  },
}

/** Those that run when none is named; the others take longer. */
export const usualCases = Object.keys(benchCases).filter(
  name => name !== 'read-20000' && name !== 'rotation',
)
