import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { exitWithUsage, parseOptions } from '#scripts/command-line.ts'
import { Cluster } from '#scripts/lab/prove/cluster.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import {
  formatNumber,
  holds,
  isMissed,
  renderPage,
  type ProofFacts,
  type ProvenSection,
} from '#scripts/lab/prove/page.ts'
import type { SectionContext, SectionResult } from '#scripts/lab/prove/section.ts'
import { sections, type Section } from '#scripts/lab/prove/sections.ts'
import { Stores } from '#scripts/lab/prove/stores.ts'

const help = `Usage: npm exec -- node scripts/lab/prove.ts [options]

Proves what this service promises on two web and two worker processes, under faults and load: nothing acknowledged is
lost or doubled, no tenant sees another, nothing malformed breaks it, nothing deleted is seen again. It ends by itself.
Embedded databases are started for it; with DATABASE_URL and MONGODB_URI new databases on those servers are used,
and the sections that stop a database or put it back are not run.

  --minutes N     time of the whole run (10)
  --release       what a release is proved with, in about two hours on two cores; --minutes is for the other sections:
${releaseExtents()}
  --only NAMES    sections, separated by commas:
${wrapNames(Object.keys(sections))}
  --rate N        requests a second of the load (200)
  --seed N        repeats the choices of a run that failed
  --page FILE     writes the results into a page of Markdown; sections that were not run stay as they are
  --help          this text

Exits with 1 when something did not hold. SIGTERM ends the section it is in and prints what that found, which the page
does not get; SIGINT (Ctrl+C) ends at once. Both leave nothing behind.
`

const options = parseOptions(help, {
  minutes: { type: 'string', default: '10' },
  release: { type: 'boolean', default: false },
  only: { type: 'string' },
  rate: { type: 'string', default: '200' },
  seed: { type: 'string' },
  page: { type: 'string' },
})
const [minutes, rate] = [Number(options.minutes), Number(options.rate)]
const seed = Number(options.seed ?? Math.floor(Math.random() * 1e9))

const names = options.only?.split(',') ?? Object.keys(sections)
const faults = [
  ...names.filter(name => !(name in sections)).map(name => `No such section: ${name}`),
  ...(minutes > 0 && minutes <= 24 * 60 ? [] : ['--minutes takes a number above 0, at most 1440']),
  ...(rate > 0 && rate <= 10_000 ? [] : ['--rate takes a number above 0, at most 10000']),
  ...(Number.isSafeInteger(seed) ? [] : ['--seed takes a whole number']),
]
if (faults.length > 0) exitWithUsage(faults, help)
await prove()

async function prove(): Promise<void> {
  const resources = new AsyncDisposableStack()
  const interrupt = new AbortController()
  process.on('SIGTERM', () => interrupt.abort())
  // A terminal sends it to the processes of the cluster, too: what they answer then is no figure.
  process.once('SIGINT', () => void resources.disposeAsync().finally(() => process.exit(1)))
  try {
    await runSections(await openContext(resources, interrupt.signal))
  } finally {
    await resources.disposeAsync()
  }
}

type RunContext = Omit<SectionContext, 'ms' | 'count' | 'random' | 'report'>

/** What is opened is closed with `resources`, the last first. */
async function openContext(
  resources: AsyncDisposableStack,
  interrupt: AbortSignal,
): Promise<RunContext> {
  const folder = mkdtempSync(join(tmpdir(), 'vault-proof-'))
  resources.defer(() => rmSync(folder, { recursive: true, force: true }))
  const isGiven = Boolean(process.env.DATABASE_URL && process.env.MONGODB_URI)
  const stores = isGiven ? null : await Stores.start(join(folder, 'stores'), print)
  resources.defer(async () => await stores?.stop())
  const provider = new ModelProvider()
  resources.defer(() => provider.close())
  const cluster = await Cluster.start({
    ...stores?.environment,
    ...(await provider.listen()),
    WEBHOOK_LOOPBACK: 'on',
    ADMIN_SECRET: 'operator-of-the-proof',
    ADMIN_EMAIL: 'operator@example.com',
    EMBEDDINGS: 'local',
    LOG_LEVEL: 'silent',
  })
  resources.defer(() => cluster.stop())
  return { cluster, provider, stores, folder, rate, interrupt }
}

async function runSections(context: RunContext): Promise<void> {
  print(`Seed ${seed}: --seed ${seed} repeats the choices of this run`)
  const proofFacts = readFacts()
  const shares = names.reduce((sum, name) => sum + sections[name]!.share, 0)
  const results: ProvenSection[] = []
  for (const name of names) {
    if (context.interrupt.aborted) break
    const section = sections[name]!
    const { description, run } = section
    print(`\n${name}: ${description}`)
    const startedAt = Date.now()
    const extent = extentOf(section, shares)
    const random = seededRandom(seed)
    const report = (text: string): void => print(`  ${text}`)
    const result = await runSection({ ...context, ...extent, random, report }, run)
    const seconds = Math.round((Date.now() - startedAt) / 1_000)
    results.push({ ...result, name, description, seconds, facts: proofFacts })
    printResult(result)
    // After each section, so that a run of hours that is stopped has written what it found.
    if (options.page !== undefined && !context.interrupt.aborted) writePage(options.page, results)
  }
  const broken = results.filter(result => !holds(result))
  print(
    broken.length === 0
      ? `\nEverything held${context.interrupt.aborted ? ' until the run was interrupted' : ''}`
      : `\nBROKEN: ${broken.map(({ name }) => name).join(', ')}; --seed ${seed}`,
  )
  if (broken.length > 0 || context.interrupt.aborted) process.exitCode = 1
}

function extentOf(
  { share, release }: Section,
  shares: number,
): Pick<SectionContext, 'ms' | 'count'> {
  const ms = (minutes * 60_000 * share) / shares
  if (!options.release || !release) return { ms, count: null }
  return 'count' in release
    ? { ms, count: release.count }
    : { ms: release.minutes * 60_000, count: null }
}

/** A section that cannot go on is broken; those after it are run. */
async function runSection(context: SectionContext, run: Section['run']): Promise<SectionResult> {
  try {
    return await run(context)
  } catch (error) {
    return { figures: [], faults: [`it ended early: ${(error as Error).message}`] }
  }
}

function printResult(result: SectionResult): void {
  for (const figure of result.figures) {
    const { name, value, unit = '', most } = figure
    const verdict = most === undefined ? '' : isMissed(figure) ? `BROKEN: at most ${most}` : 'held'
    print(
      `  ${name.padEnd(48)}${formatNumber(value).padStart(12)} ${unit.padEnd(4)} ${verdict}`.trimEnd(),
    )
  }
  if (result.notRun !== undefined) print(`  not run: ${result.notRun}`)
  for (const fault of result.faults) print(`  ! ${fault}`)
}

function readFacts(): ProofFacts {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const flags = options.release ? '--release ' : ''
  return {
    commit,
    date: new Date(),
    seed,
    command: `node scripts/lab/prove.ts ${flags}--minutes ${minutes} --rate ${rate}`,
    machine: `${cpus().length} cores, Node ${process.version}`,
  }
}

function writePage(file: string, results: readonly ProvenSection[]): void {
  const previous = existsSync(file) ? readFileSync(file, 'utf8') : ''
  writeFileSync(file, renderPage(previous, results, Object.keys(sections)))
}

function releaseExtents(): string {
  const extents = Object.values(sections).flatMap(({ release }) => release ?? [])
  const texts = extents.map(
    extent => `${formatNumber('count' in extent ? extent.count : extent.minutes)} ${extent.unit}`,
  )
  return wrapNames(texts)
}

function wrapNames(all: readonly string[]): string {
  const half = Math.ceil(all.length / 2)
  const indent = ' '.repeat(18)
  return [all.slice(0, half), all.slice(half)]
    .map(part => `${indent}${part.join(', ')}`)
    .join(',\n')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
