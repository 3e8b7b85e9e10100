import { readdirSync, readFileSync } from 'node:fs'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { median, measureRate, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { createPoster, startProcess, type RunningProcess } from '#scripts/lab/bench/process.ts'
import { Caller, cpuSeconds } from '#scripts/lab/bench/proxy/load.ts'

/** Vaults of a proxied call, by their Memory Keys. */
export type MemoryVaults = {
  /** 2,000 and 20,000 different memories. */
  small: string
  large: string
  /** Nothing, and 20,000 copies of the exchange of `repeatedQuestion`. */
  empty: string
  repeated: string
}

const next = seededRandom(8)
export const repeatedQuestion = randomSentence(40, next)
let asked = 0

const newQuestion = (): string => `${randomSentence(40, next)} ${++asked}`

type BodyOptions = { mode: 'on' | 'off' | 'read'; before?: readonly object[]; content?: string }

const bodyOf = ({ mode, before = [], content = newQuestion() }: BodyOptions): string =>
  JSON.stringify({
    model: 'gpt-5',
    memory_mode: mode,
    messages: [...before, { role: 'user', content }],
  })

/** The seven turns before the question of a chat. */
const chat = Array.from({ length: 7 }, (_, index) => ({
  role: index % 2 === 0 ? 'assistant' : 'user',
  content: randomSentence(40, next),
}))

/** An agent's conversation of 400 KB: 200 steps with results of 2 KB. */
const agentSteps = Array.from({ length: 200 }, (_, index) => [
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      {
        id: `c${index}`,
        type: 'function',
        function: { name: 'read', arguments: '{"path":"a.ts"}' },
      },
    ],
  },
  { role: 'tool', tool_call_id: `c${index}`, content: randomSentence(320, next) },
]).flat()
const agent = [
  { role: 'user', content: randomSentence(40, next) },
  ...agentSteps,
  { role: 'assistant', content: randomSentence(40, next) },
]

/** A prompt of some 100,000 tokens before the question. */
const longPrompt = [{ role: 'system', content: randomSentence(75_000, next) }]

const runs = 200
const clients = 16

/**
 * Measures calls with memory while all processes of a service run: by the time they take and the CPU that the web
 * process, and all processes together, use.
 *
 * @param env of the service; its web process and a worker are started
 */
export async function reportMemoryCases(
  env: Record<string, string>,
  vaults: MemoryVaults,
): Promise<void> {
  const web = await startProcess('api/index.ts', env)
  const worker = await startProcess('workers/index.ts', env)
  const callers = new Map<string, Caller>()
  const callOf = (key: string, options: BodyOptions) => {
    const caller = callers.get(key) ?? new Caller(web.port, key)
    callers.set(key, caller)
    return () => caller.call(bodyOf({ before: chat, ...options }))
  }
  const searchOf = (key: string) => {
    const post = createPoster(web.port, '/v1/memory/search', key)
    return async (): Promise<void> => {
      const { status, text } = await post(JSON.stringify({ query: newQuestion(), limit: 10 }))
      if (status !== 200) throw new Error(`${status} ${text}`)
    }
  }
  try {
    for (const [name, key] of [
      ['2,000', vaults.small],
      ['20,000', vaults.large],
    ] as const) {
      const figures = await measureEach(web, {
        off: callOf(key, { mode: 'off' }),
        search: searchOf(key),
        read: callOf(key, { mode: 'read' }),
        on: callOf(key, { mode: 'on' }),
      })
      const { off, search, read, on } = figures
      report(`a search of ${name} memories, CPU`, search.cpuMs, { unit: 'ms' })
      report(`${name}: read only / search, CPU`, read.cpuMs / search.cpuMs, { bar: { most: 1.5 } })
      report(`${name}: read only, added p50`, read.p50 - off.p50, { unit: 'ms', bar: { most: 4 } })
      report(`${name}: reading and storing, added p50`, on.p50 - off.p50, {
        unit: 'ms',
        bar: { most: 8 },
      })
      report(`${name}: reading and storing, CPU of the web process`, on.cpuMs, {
        unit: 'ms',
        bar: { most: 3 },
      })
    }
    await reportThroughput(web, callOf(vaults.small, { mode: 'on' }))
    const repeat = { mode: 'on', before: [], content: repeatedQuestion } as const
    const { first, repeated } = await measureEach(web, {
      first: callOf(vaults.empty, repeat),
      repeated: callOf(vaults.repeated, repeat),
    })
    report('one message again and again, CPU', first.cpuMs, { unit: 'ms' })
    report('the same after 20,000 repeats / before, CPU', repeated.cpuMs / first.cpuMs, {
      bar: { most: 1.2 },
    })
    const long = await measureEach(web, {
      agent: callOf(vaults.small, { mode: 'read', before: agent }),
      agentOff: callOf(vaults.small, { mode: 'off', before: agent }),
      prompt: callOf(vaults.small, { mode: 'read', before: longPrompt }),
      promptOff: callOf(vaults.small, { mode: 'off', before: longPrompt }),
    })
    report('an agent conversation of 400 KB, added p50', long.agent.p50 - long.agentOff.p50, {
      unit: 'ms',
    })
    report('a prompt of 100,000 tokens, added p50', long.prompt.p50 - long.promptOff.p50, {
      unit: 'ms',
    })
  } finally {
    await Promise.all([...callers.values()].map(caller => caller.close()))
    await Promise.all([web.stop(), worker.stop()])
  }
}

type Figure = { p50: number; cpuMs: number }

/** Figures of works of one web process, interleaved so that a change of the machine's speed affects all of them. */
async function measureEach<Name extends string>(
  web: RunningProcess,
  works: Record<Name, () => Promise<void>>,
): Promise<Record<Name, Figure>> {
  const rounds = 4
  const measured = Object.entries(works) as [Name, () => Promise<void>][]
  const figures = new Map<Name, Figure[]>(measured.map(([name]) => [name, []]))
  for (const [, work] of measured) for (let n = 0; n < runs; n++) await work()
  for (let round = 0; round < rounds; round++) {
    for (const [name, work] of measured) {
      const before = cpuSeconds(web.child.pid!)
      const times = await timeRuns(runs / rounds, work)
      const cpu = cpuSeconds(web.child.pid!) - before
      // `timeRuns` warms up with a tenth.
      figures.get(name)!.push({ p50: median(times), cpuMs: (cpu * 1_000) / (times.length * 1.1) })
    }
  }
  const of = (name: Name): Figure => ({
    p50: median(figures.get(name)!.map(({ p50 }) => p50)),
    cpuMs: median(figures.get(name)!.map(({ cpuMs }) => cpuMs)),
  })
  return Object.fromEntries(measured.map(([name]) => [name, of(name)])) as Record<Name, Figure>
}

async function reportThroughput(web: RunningProcess, work: () => Promise<void>): Promise<void> {
  let calls = 0
  const before = cpuSecondsBelow(process.ppid) - cpuSeconds(process.pid)
  const webBefore = cpuSeconds(web.child.pid!)
  const rate = await measureRate(clients, 5, async () => {
    await work()
    calls++
  })
  const all = cpuSecondsBelow(process.ppid) - cpuSeconds(process.pid) - before
  report(`reading and storing, at ${clients} clients`, rate, { unit: '/s', bar: { least: 300 } })
  report(
    'CPU of the web process a call',
    ((cpuSeconds(web.child.pid!) - webBefore) * 1_000) / calls,
    {
      unit: 'ms',
      bar: { most: 3 },
    },
  )
  report('CPU of all processes a call', (all * 1_000) / calls, { unit: 'ms', bar: { most: 6 } })
}

/** CPU seconds of a process and all that descend from it: databases, web process and worker. */
function cpuSecondsBelow(root: number): number {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It has ended.
    }
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (pid === root || isBelow(parents.get(pid)))
  return [...parents.keys()].filter(isBelow).reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
}

function cpuSecondsOf(pid: number): number {
  try {
    return cpuSeconds(pid)
  } catch {
    return 0
  }
}
