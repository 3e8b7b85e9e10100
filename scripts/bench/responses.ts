import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomSentence, seededRandom } from '#scripts/bench/bench-environment.ts'
import { median, report, timeRuns } from '#scripts/bench/measure.ts'
import { createPoster, startProcess } from '#scripts/bench/process.ts'
import { setUpProxy } from '#scripts/bench/proxy/setup.ts'
import { countTokens } from '#shared/core/tokens.ts'

const next = seededRandom(3)
const reply = randomSentence(60, next)

/** A model that answers immediately in both formats: the additional time of a call is that of the service. */
const answers = {
  '/v1/chat/completions': JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: reply } }],
    usage: { prompt_tokens: 400, completion_tokens: 80, total_tokens: 480 },
  }),
  '/v1/responses': JSON.stringify({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: reply, annotations: [] }],
      },
    ],
    usage: { input_tokens: 400, output_tokens: 80, total_tokens: 480 },
  }),
}
type Path = keyof typeof answers
const paths = Object.keys(answers) as Path[]

const model = createServer((request, response) => {
  request.resume().once('end', () => {
    response.setHeader('content-type', 'application/json')
    response.end(answers[request.url as Path])
  })
})
await new Promise<void>(resolve => model.listen(0, '127.0.0.1', resolve))
const { port: modelPort } = model.address() as AddressInfo

const { env, key } = await setUpProxy(modelPort)

type Turn = { role: 'user' | 'assistant'; content: string }

/** A conversation of at least so many tokens that ends before a question of the user. */
function conversation(tokens: number): Turn[] {
  const turns: Turn[] = []
  for (let count = 0; count < tokens || turns.length % 2 === 1;) {
    const content = randomSentence(60, next)
    turns.push({ role: turns.length % 2 === 0 ? 'user' : 'assistant', content })
    count += countTokens(content)
  }
  return turns
}

let calls = 0
/** The question differs in each call: equal requests are stored as one turn. */
function buildBody(path: Path, turns: Turn[]): string {
  const question: Turn = { role: 'user', content: `${randomSentence(40, next)} ${++calls}` }
  const messages = [...turns, question]
  const field = path === '/v1/responses' ? 'input' : 'messages'
  return JSON.stringify({ model: 'gpt-5', [field]: messages })
}

const web = await startProcess('api/index.ts', env)
const ticksPerSecond = 100

/** Milliseconds of processor time that the web process has used; only where there is /proc. */
function processorMs(): number {
  const fields = readFileSync(`/proc/${web.child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1_000
}

type Figures = { direct: number[]; proxied: number[]; cpu: number[] }

/** Interleaved, so that a change of the machine's speed affects all of them. */
async function compare(name: string, turns: Turn[], rounds: number, runs: number): Promise<void> {
  const figures = new Map<Path, Figures>(
    paths.map(path => [path, { direct: [], proxied: [], cpu: [] }]),
  )
  const post = (port: number, path: Path, secret: string) => {
    const poster = createPoster(port, path, secret)
    return async (): Promise<void> => {
      const { status, text } = await poster(buildBody(path, turns))
      if (status !== 200) throw new Error(`${status} ${text}`)
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const path of paths) {
      const { direct, proxied, cpu } = figures.get(path)!
      direct.push(...(await timeRuns(runs, post(modelPort, path, 'sk'))))
      const before = processorMs()
      proxied.push(...(await timeRuns(runs, post(web.port, path, key))))
      // Runs to warm up are a tenth more.
      cpu.push((processorMs() - before) / (runs + Math.ceil(runs / 10)))
    }
  }
  const [chat, responses] = paths.map(path => {
    const { direct, proxied, cpu } = figures.get(path)!
    return { added: median(proxied) - median(direct), cpu: median(cpu) }
  })
  for (const [label, { added, cpu }] of [
    ['chat completions', chat!],
    ['Responses', responses!],
  ] as const) {
    report(`${name}: added by memory, ${label}, p50`, added, { unit: 'ms' })
    report(`${name}: processor time of a call, ${label}`, cpu, { unit: 'ms' })
  }
  const bar = { most: 1.1 }
  report(`${name}: added time, Responses / chat completions`, responses!.added / chat!.added, {
    bar,
  })
  report(`${name}: processor time, Responses / chat completions`, responses!.cpu / chat!.cpu, {
    bar,
  })
}

await compare('7 turns', conversation(400), 5, 100)
await compare('100,000 tokens', conversation(100_000), 5, 10)

await web.stop()
model.close()
model.closeAllConnections()
