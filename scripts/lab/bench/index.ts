import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exitWithUsage, parsePositionals } from '#scripts/command-line.ts'
import { startServices } from '#scripts/services/services.ts'

const sections: Record<string, string> = {
  search: 'a search over HTTP against a bare float32 scan, and one of int8, plus one findOne',
  accept: 'accepted exchanges against bare transactional pg-boss sends',
  store: 'stored memories through the worker against bare insertMany; time until searchable',
  upload:
    'a file of 10,000 lines, stored and searchable, against bare insertMany; memory; concurrent search',
  cold: 'the first search of a vault after a start, and loading it, against a bare read of its vectors',
  recall: 'how often searches find the turns that answer, on two sets of conversations',
  superseded: 'which of two statements that contradict each other a search tells first',
  harm: 'what memory does to questions in nine languages, answerable or not, and to messages that ask nothing',
  embedders: 'the built-in embedder beside the models that embedding-model has fetched',
  proxy:
    'a model call through the service, with and without memory, against a direct one, a bare pipe and nginx',
}

const help = `Usage: npm run bench -- [section …], or npm run bench -- ab <commit> [case …]

Measures speed as ratios against the bare drivers and engines, in one run on new embedded services.
Without names it runs all sections. Ratios are comparable between machines; absolute times are not.

${Object.entries(sections)
  .map(([name, description]) => `  ${name.padEnd(13)}${description}`)
  .join('\n')}

  ab           two states of the project, side by side; see npm run bench -- ab --help
  --help       this text
`

if (process.argv[2] === 'ab') {
  process.argv.splice(2, 1)
  await import('#scripts/lab/bench/ab.ts')
  process.exit()
}

/** What the sections so far have not reached. */
const missedBars: string[] = []

/** Aborted by Ctrl-C or SIGTERM: the section ends, and after it the databases. */
const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort())

const requestedSections = parsePositionals(help)
const unknownSections = requestedSections.filter(name => !(name in sections))
if (unknownSections.length > 0) {
  exitWithUsage([`No such section: ${unknownSections.join(', ')}`], help)
}
await runSections(requestedSections.length > 0 ? requestedSections : Object.keys(sections))

async function runSections(names: string[]): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-bench-'))
  const printLine = (line: string): void => void process.stdout.write(`${line}\n`)
  printLine(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'processor'}`)
  const services = await startServices({ dataDir, log: printLine })
  try {
    for (const name of names) {
      printLine(`\n${name}: ${sections[name]} (load ${loadavg()[0]!.toFixed(2)})`)
      const code = await runSection(name, {
        DATABASE_URL: services.databaseUrl,
        MONGODB_URI: services.mongodbUri,
      })
      if (code === 0) continue
      process.exitCode = 1
      missedBars.push(`${name} ended with ${code} before all of its figures were printed`)
      if (interrupted.signal.aborted) break
    }
    printLine(missedBars.length === 0 ? '\nAll bars are reached' : '\nMissed:')
    for (const missed of missedBars) printLine(`  ${missed}`)
  } finally {
    await services.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Runs a section in a separate process, so that sections do not affect each other's memory. */
function runSection(name: string, env: Record<string, string>): Promise<number> {
  const program = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  return new Promise(resolve => {
    fork(program, [], {
      env: { ...process.env, ...env },
      signal: interrupted.signal,
      execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    })
      .on('message', ({ missed }: { missed: string }) => missedBars.push(missed))
      .on('error', error => process.stderr.write(`${name}: ${error.message}\n`))
      .once('exit', code => resolve(code ?? 1))
  })
}
