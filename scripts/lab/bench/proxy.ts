import { median, measureRate, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { startProcess } from '#scripts/lab/bench/process.ts'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { Caller, cpuSeconds, p99AtRate, type Call } from '#scripts/lab/bench/proxy/load.ts'
import { startNginx } from '#scripts/lab/bench/proxy/nginx.ts'
import { reportMemoryCases, repeatedQuestion } from '#scripts/lab/bench/proxy/memory-cases.ts'
import { modelReply } from '#scripts/lab/bench/proxy/model-answer.ts'
import { setUpProxy } from '#scripts/lab/bench/proxy/setup.ts'

const next = seededRandom(3)
const rounds = 5
const clients = 16
const streams = 100

/** The first seven turns of a conversation of eight. */
const turns = Array.from({ length: 7 }, (_, index) => ({
  role: index % 2 === 0 ? 'assistant' : 'user',
  content: randomSentence(40, next),
}))
let calls = 0
/** The question differs in each call: equal concurrent requests are stored as one turn. */
const bodyOf = (mode: 'on' | 'off' | 'read', more: { stream?: true; padding?: string } = {}) => {
  const { padding = '', ...fields } = more
  const question = { role: 'user', content: `${randomSentence(40, next)} ${++calls}` }
  const messages = [{ role: 'system', content: padding }, ...turns, question].filter(
    ({ content }) => content !== '',
  )
  return JSON.stringify({ model: 'gpt-5', messages, memory_mode: mode, ...fields })
}
const longText = randomSentence(70_000, next).slice(0, 400_000)

const model = await startProcess('scripts/lab/bench/proxy/model-double.ts', {
  ...(process.env as Record<string, string>),
})
const { env, createKey } = await setUpProxy(model.port)
const key = await createKey({ count: 2_000 })
const pipe = await startProcess('scripts/lab/bench/proxy/bare-pipe.ts', {
  ...env,
  MODEL_URL: `http://127.0.0.1:${model.port}`,
})
const web = await startProcess('api/index.ts', env)
const nginx = await startNginx(model.port)

type Target = { name: string; caller: Caller; mode: 'on' | 'off' | 'read'; pid?: number }
const viaService = new Caller(web.port, key)
const viaPipe = new Caller(pipe.port, key)
const direct: Target = { name: 'direct', caller: new Caller(model.port, key), mode: 'off' }
const piped: Target = { name: 'bare pipe', caller: viaPipe, mode: 'off', pid: pipe.child.pid! }
const off: Target = { name: 'memory off', caller: viaService, mode: 'off', pid: web.child.pid! }
const read: Target = { ...off, name: 'memory read', mode: 'read' }
const on: Target = { ...off, name: 'memory on', mode: 'on' }
const viaNginx = nginx && {
  name: 'nginx',
  caller: new Caller(nginx.port, key),
  mode: 'off' as const,
}
const targets: Target[] = [direct, piped, ...(viaNginx ? [viaNginx] : []), off, read, on]
if (!viaNginx) process.stdout.write('  nginx is not installed: its figures are left out\n')

const callOf =
  ({ caller, mode }: Target): Call =>
  () =>
    caller.call(bodyOf(mode))

await warmUp()
await reportTimes()
await reportRates()
await reportTail()
await reportLongConversation()
await reportStreams()

await Promise.all([web.stop(), pipe.stop()])
nginx?.stop()
await Promise.all(targets.map(({ caller }) => caller.close()))
await reportMemoryCases(env, {
  small: await createKey({ count: 2_000, seed: 5 }),
  large: await createKey({ count: 20_000, seed: 6 }),
  empty: await createKey({ count: 0 }),
  repeated: await createKey({ count: 40_000, texts: [repeatedQuestion, modelReply] }),
})
await model.stop()

/** Interleaved, so that a change of the machine's speed affects all of them. */
async function measureEach<Figure>(
  measured: readonly Target[],
  measure: (target: Target) => Promise<Figure[]>,
): Promise<(target: Target) => Figure[]> {
  const figures = new Map<Target, Figure[]>(measured.map(target => [target, []]))
  for (let round = 0; round < rounds; round++) {
    for (const target of measured) figures.get(target)!.push(...(await measure(target)))
  }
  return target => figures.get(target)!
}

/** A proxy runs for days: what its first thousands of calls compile is no cost of a call. */
async function warmUp(): Promise<void> {
  for (const target of targets) await measureRate(clients, target === on ? 3 : 10, callOf(target))
}

async function reportTimes(): Promise<void> {
  const timesOf = await measureEach(targets, target => timeRuns(100, callOf(target)))
  const p50 = (target: Target): number => median(timesOf(target))
  for (const target of targets) report(`a call, ${target.name}, p50`, p50(target), { unit: 'ms' })
  report('added by the bare pipe, p50', p50(piped) - p50(direct), { unit: 'ms' })
  if (viaNginx) report('added by nginx, p50', p50(viaNginx) - p50(direct), { unit: 'ms' })
  report('added by memory off, p50', p50(off) - p50(direct), { unit: 'ms', bar: { most: 0.35 } })
  report('added by memory read to memory off, p50', p50(read) - p50(off), { unit: 'ms' })
  report('added by memory on to memory off, p50', p50(on) - p50(off), {
    unit: 'ms',
    bar: { most: 4 },
  })
}

async function reportRates(): Promise<void> {
  const measured = targets.filter(({ name }) => name !== 'direct' && name !== 'memory read')
  const ratesOf = await measureEach(measured, async target => {
    const before = target.pid ? cpuSeconds(target.pid) : 0
    const counted = calls
    const rate = await measureRate(clients, 2, callOf(target))
    const cpu = target.pid ? cpuSeconds(target.pid) - before : Number.NaN
    return [{ rate, cpuMicroseconds: (cpu * 1_000_000) / (calls - counted) }]
  })
  const rate = (target: Target): number => median(ratesOf(target).map(figure => figure.rate))
  const cpu = (target: Target): number =>
    median(ratesOf(target).map(figure => figure.cpuMicroseconds))
  for (const target of measured)
    report(`calls at ${clients} clients, ${target.name}`, rate(target), { unit: '/s' })
  report(`memory off / bare pipe, at ${clients} clients`, rate(off) / rate(piped), {
    bar: { least: 0.4 },
  })
  if (viaNginx) report('memory off / nginx', rate(off) / rate(viaNginx))
  report('calls with memory, one web process', rate(on), { unit: '/s', bar: { least: 500 } })
  report('CPU of a call, bare pipe', cpu(piped), { unit: 'µs' })
  report('CPU of a call, memory off', cpu(off), { unit: 'µs', bar: { most: 300 } })
  report('CPU added by memory on to memory off', cpu(on) - cpu(off), {
    unit: 'µs',
    bar: { most: 2_500 },
  })
}

async function reportTail(): Promise<void> {
  const tailOf = await measureEach([direct, piped, off], async target => [
    await p99AtRate(500, 2, callOf(target)),
  ])
  for (const target of [direct, piped])
    report(`500 calls/s, ${target.name}, p99`, median(tailOf(target)), { unit: 'ms' })
  report('500 calls/s, memory off, p99', median(tailOf(off)), { unit: 'ms', bar: { most: 2 } })
}

async function reportLongConversation(): Promise<void> {
  const timesOf = await measureEach([piped, off, on], ({ caller, mode }) =>
    timeRuns(20, () => caller.call(bodyOf(mode, { padding: longText }))),
  )
  const p50 = (target: Target): number => median(timesOf(target))
  report('a conversation of 400 KB, bare pipe, p50', p50(piped), { unit: 'ms' })
  report('a conversation of 400 KB, memory on, p50', p50(on), { unit: 'ms' })
  report('a conversation of 400 KB, memory off / bare pipe', p50(off) / p50(piped), {
    bar: { most: 1.5 },
  })
}

async function reportStreams(): Promise<void> {
  const stallsOf = await measureEach([direct, piped, off, on], async ({ caller, mode }) => {
    const bodies = Array.from({ length: streams }, () => bodyOf(mode, { stream: true }))
    const stalls = await Promise.all(bodies.map(body => caller.longestStall(body)))
    return [Math.max(...stalls)]
  })
  for (const target of [direct, piped])
    report(`${streams} streams, ${target.name}, longest stall`, median(stallsOf(target)), {
      unit: 'ms',
    })
  for (const target of [off, on]) {
    report(`${streams} streams, ${target.name}, longest stall`, median(stallsOf(target)), {
      unit: 'ms',
      bar: { most: 20 },
    })
  }
}
