import { mkdtemp } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { benchCases, usualCases, type BenchCase } from '#scripts/lab/bench/ab/cases.ts'
import { checkOut, removeFolder, run } from '#scripts/lab/bench/ab/checkout.ts'
import { startProviderDouble } from '#scripts/lab/bench/ab/double.ts'
import { compareRounds, measureRound, type Figures } from '#scripts/lab/bench/ab/figures.ts'
import type { ServiceClient } from '#scripts/lab/bench/ab/service-client.ts'
import { RunningState } from '#scripts/lab/bench/ab/state.ts'

const help = `Usage: npm run bench -- ab <commit> [case …]

Measures this checkout beside another state of the project: that commit is checked out into a temporary folder, both run
at once with databases of their own, and each case alternates between them. Prints the CPU of each process, calls a second
and the ratio this / other with its spread, of rounds without the best and the worst; where that covers 1 they are equal.
CPU includes what is left to do after the answers. Ends within ten minutes; cases that were reached less often say so.

${Object.entries(benchCases)
  .map(([name, { title }]) => `  ${name.padEnd(13)}${title}`)
  .join('\n')}

  --rounds <n>  of each case (default: 5)
  --help        this text
`

/** After these no further round begins: ten minutes are over soon, on a machine that fills vaults in good time. */
const lastRoundMs = 540_000
const leastMeasuringMs = 180_000

const startedAt = performance.now()
const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort())

const { values, positionals } = parseCommand(help, { rounds: { type: 'string', default: '5' } })
const [commit, ...named] = positionals
const rounds = Number(values.rounds)
const unknown = named.filter(name => !Object.hasOwn(benchCases, name))
if (commit === undefined) exitWithUsage(['Name the commit to compare with'], help)
if (unknown.length > 0) exitWithUsage([`No such case: ${unknown.join(', ')}`], help)
if (!(Number.isInteger(rounds) && rounds >= 3)) exitWithUsage(['--rounds is at least 3'], help)

const printLine = (line: string): void => void process.stdout.write(`${line}\n`)
const ends: (() => Promise<unknown> | void)[] = []
try {
  await compare(commit, named.length > 0 ? named : usualCases)
} finally {
  for (const end of ends.toReversed()) await end()
}

/** A state with the clients of each case, one for each of its vaults. */
type Side = { state: RunningState; clients: Map<string, ServiceClient[]> }

async function compare(other: string, names: readonly string[]): Promise<void> {
  const repository = fileURLToPath(new URL('../../..', import.meta.url))
  const { signal } = interrupted
  const work = await mkdtemp(join(tmpdir(), 'vault-ab-'))
  ends.push(() => removeFolder(work))
  const checkout = join(work, 'other')
  ends.push(await checkOut(repository, other, checkout, signal))
  const double = await startProviderDouble()
  ends.push(double.close)
  const sides: Side[] = []
  for (const [name, folder] of [
    ['other', checkout],
    ['this', repository],
  ] as const) {
    const dataDir = join(work, `data-${name}`)
    const state = await RunningState.start(folder, dataDir, double.baseUrl, signal)
    ends.push(() => state.stop())
    sides.push({ state, clients: await fillVaults(state, names) })
  }
  const commitOf = async (folder: string): Promise<string> =>
    (await run('git', ['-C', folder, 'describe', '--always', '--dirty'])).trim()
  printLine(`other: ${await commitOf(checkout)}, this: ${await commitOf(repository)}`)

  const lastRoundAt = Math.max(startedAt + lastRoundMs, performance.now() + leastMeasuringMs)
  // What processes compile at first is no cost of a call.
  for (const name of names) await measureBoth(name, sides, 0)
  const taken = new Map<string, [Figures, Figures][]>(names.map(name => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      if (signal.aborted || performance.now() > lastRoundAt) break
      taken.get(name)!.push(await measureBoth(name, sides, round))
    }
  }
  printLine(
    `load ${loadavg()[0]!.toFixed(2)}, ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
  )
  for (const [name, figures] of taken) printCase(name, benchCases[name]!, figures)
}

async function fillVaults(
  state: RunningState,
  names: readonly string[],
): Promise<Map<string, ServiceClient[]>> {
  const clients = new Map<string, ServiceClient[]>(names.map(name => [name, []]))
  for (const name of names) {
    const { memories, others = [] } = benchCases[name]!
    for (const count of [memories, ...others]) {
      const client = await state.createClient()
      ends.push(() => client.close())
      for (let left = count; left > 0; left -= 5_000) await client.fill(Math.min(left, 5_000))
      clients.get(name)!.push(client)
    }
  }
  return clients
}

async function measureBoth(
  name: string,
  sides: readonly Side[],
  round: number,
): Promise<[Figures, Figures]> {
  const figures: Figures[] = []
  for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
    const { state, clients } = sides[side]!
    figures[side] = await measureRound(benchCases[name]!, state, clients.get(name)!)
  }
  return [figures[0]!, figures[1]!]
}

function printCase(name: string, { title }: BenchCase, figures: [Figures, Figures][]): void {
  printLine(`\n${name}: ${title} (${figures.length} rounds)`)
  if (figures.length === 0) return
  printLine(
    `  ${'median (least)'.padEnd(28)}${'other'.padStart(20)}${'this'.padStart(20)}   this / other`,
  )
  for (const line of compareRounds(figures)) printLine(line)
}
