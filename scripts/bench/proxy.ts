import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolveCaller, fillVault } from '#scripts/bench/fill-vault.ts'
import { median, quantile, measureRate, report, timeRuns } from '#scripts/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/bench/process.ts'
import {
  createBenchEnvironment,
  createBenchKey,
  log,
  seededRandom,
  randomSentence,
} from '#scripts/bench/bench-environment.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { serviceActor } from '#shared/events/account-events.postgres.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'

const memoryCount = 2_000
const concurrency = 16
const next = seededRandom(3)

/** A model that answers immediately: additional time of a call is the time of the service. */
const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: randomSentence(60, next) },
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

const env = await createBenchEnvironment({ OPENAI_BASE_URL: `http://127.0.0.1:${modelPort}/v1` })
const config = readConfig(env)
const backend = await openBackend(config, log, 'web')
const key = await createBenchKey(backend, config)
const { account } = await resolveCaller(backend, key)
await storeProviderKey(
  { query: backend.postgres.query, seal: backend.seal },
  { account, actor: serviceActor },
  'openai',
  'sk-of-the-benchmark',
)
const embedder = await backend.embedders.get()
const step = 600_000
await fillVault(backend, key, {
  count: memoryCount,
  words: 30,
  seed: 4,
  from: Date.now() - memoryCount * step,
  step,
  embedTexts: texts => embedder.embedTexts(texts),
})
await backend.close()

/** The first seven turns of a conversation of eight. */
const turns = Array.from({ length: 7 }, (_, index) => ({
  role: index % 2 === 0 ? 'assistant' : 'user',
  content: randomSentence(40, next),
}))
let calls = 0
/** The question differs in each call: equal concurrent requests are stored as one turn. */
const buildBody = (mode: 'on' | 'off' | 'read'): string => {
  const question = { role: 'user', content: `${randomSentence(40, next)} ${++calls}` }
  return JSON.stringify({ model: 'gpt-5', messages: [...turns, question], memory_mode: mode })
}

const web = await startProcess('api/index.ts', env)
const direct = createPoster(modelPort, '/v1/chat/completions', 'sk')
const proxied = createPoster(web.port, '/v1/chat/completions', key)
const call = (post: typeof direct, mode: 'on' | 'off' | 'read') => async (): Promise<void> => {
  const { status, text } = await post(buildBody(mode))
  if (status !== 200) throw new Error(`${status} ${text}`)
}
const callModes = {
  direct: call(direct, 'off'),
  'memory off': call(proxied, 'off'),
  'memory read': call(proxied, 'read'),
  'memory on': call(proxied, 'on'),
}
type CallMode = keyof typeof callModes

// Interleaved, so that a change of the machine's speed affects all of them.
const times = new Map<CallMode, number[]>()
for (let round = 0; round < 5; round++) {
  for (const [mode, run] of Object.entries(callModes) as [CallMode, () => Promise<void>][]) {
    times.set(mode, [...(times.get(mode) ?? []), ...(await timeRuns(100, run))])
  }
}
const p50 = (mode: CallMode): number => median(times.get(mode)!)
for (const mode of times.keys()) report(`a call, ${mode}, p50`, p50(mode), { unit: 'ms' })
report('a call, memory on, p99', quantile(times.get('memory on')!, 0.99), { unit: 'ms' })
for (const mode of ['memory off', 'memory read', 'memory on'] as const) {
  report(`added by ${mode}, p50`, p50(mode) - p50('direct'), { unit: 'ms' })
}
report('memory on / direct, p50', p50('memory on') / p50('direct'))
report('memory on / memory off, p50', p50('memory on') / p50('memory off'))
report(
  `calls with memory at ${concurrency} clients, one web process`,
  await measureRate(concurrency, 3, callModes['memory on']),
  {
    unit: '/s',
  },
)

await web.stop()
model.close()
model.closeAllConnections()
