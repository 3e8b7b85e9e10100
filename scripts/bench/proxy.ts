import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { callerOf, fill } from '#scripts/bench/filled.ts'
import { median, quantile, rateOf, report, timeEach } from '#scripts/bench/measure.ts'
import { poster, startProcess } from '#scripts/bench/process.ts'
import { benchEnvironment, benchKey, log, random, sentence } from '#scripts/bench/vault.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'

const memoriesHeld = 2_000
const lanes = 16
const next = random(3)

/** A model that knows its answer at once: whatever a call takes longer than this is the service's. */
const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: sentence(60, next) },
    },
  ],
  usage: { prompt_tokens: 400, completion_tokens: 80, total_tokens: 480 },
})
const model = createServer((request, response) => {
  request.resume().once('end', () => {
    response.setHeader('content-type', 'application/json')
    response.end(answer)
  })
})
await new Promise<void>(resolve => model.listen(0, '127.0.0.1', resolve))
const { port: modelPort } = model.address() as AddressInfo

const env = await benchEnvironment({ OPENAI_BASE_URL: `http://127.0.0.1:${modelPort}/v1` })
const config = readConfig(env)
const backend = await openBackend(config, log, 'web')
const key = await benchKey(backend, config)
const { account } = await callerOf(backend, key)
await storeProviderKey(
  { query: backend.postgres.query, seal: backend.seal },
  account,
  'openai',
  'sk-of-the-benchmark',
)
const embedder = await backend.embedders.get()
const step = 600_000
await fill(backend, key, {
  count: memoriesHeld,
  words: 30,
  seed: 4,
  from: Date.now() - memoriesHeld * step,
  step,
  vectorsOf: texts => embedder.embedTexts(texts),
})
await backend.close()

/** A conversation of eight turns, as a chat has after a while. */
const turns = Array.from({ length: 7 }, (_, index) => ({
  role: index % 2 === 0 ? 'assistant' : 'user',
  content: sentence(40, next),
}))
let calls = 0
/** Each asks something else: the same again, while it is being answered, is one turn. */
const bodyFor = (mode: 'on' | 'off' | 'read'): string => {
  const asked = { role: 'user', content: `${sentence(40, next)} ${++calls}` }
  return JSON.stringify({ model: 'gpt-5', messages: [...turns, asked], memory_mode: mode })
}

const web = await startProcess('api/index.ts', env)
const direct = poster(modelPort, '/v1/chat/completions', 'sk')
const through = poster(web.port, '/v1/chat/completions', key)
const call = (post: typeof direct, mode: 'on' | 'off' | 'read') => async (): Promise<void> => {
  const { status, text } = await post(bodyFor(mode))
  if (status !== 200) throw new Error(`${status} ${text}`)
}
const ways = {
  direct: call(direct, 'off'),
  'memory off': call(through, 'off'),
  'memory read': call(through, 'read'),
  'memory on': call(through, 'on'),
}
type Way = keyof typeof ways

// In turns, so that a change of the machine's speed meets all of them.
const times = new Map<Way, number[]>()
for (let round = 0; round < 5; round++) {
  for (const [way, run] of Object.entries(ways) as [Way, () => Promise<void>][]) {
    times.set(way, [...(times.get(way) ?? []), ...(await timeEach(100, run))])
  }
}
const p50 = (way: Way): number => median(times.get(way)!)
for (const way of times.keys()) report(`a call, ${way}, p50`, p50(way), { unit: 'ms' })
report('a call, memory on, p99', quantile(times.get('memory on')!, 0.99), { unit: 'ms' })
for (const way of ['memory off', 'memory read', 'memory on'] as const) {
  report(`added by ${way}, p50`, p50(way) - p50('direct'), { unit: 'ms' })
}
report('memory on / direct, p50', p50('memory on') / p50('direct'))
report('memory on / memory off, p50', p50('memory on') / p50('memory off'))
report(
  `calls with memory at ${lanes} clients, one web process`,
  await rateOf(lanes, 3, ways['memory on']),
  {
    unit: '/s',
  },
)

await web.stop()
model.close()
model.closeAllConnections()
