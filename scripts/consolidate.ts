import { faultOf } from '#scripts/command-line.ts'
import { help, readOptions } from '#scripts/consolidate/options.ts'
import { createPage, reportOf, sumOf } from '#scripts/consolidate/page.ts'
import { consolidate } from '#scripts/consolidate/run.ts'
import { openVault } from '#scripts/consolidate/vault.ts'
import { Refusal } from '#shared/core/errors.ts'

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort())
// Whoever reads may have seen enough, as `head` does.
process.stdout.on('error', () => interrupted.abort())

process.exitCode = await main()

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env)
  if (options === 'help') {
    process.stdout.write(help)
    return 0
  }
  if (Array.isArray(options)) {
    process.stderr.write(faultOf(options, help))
    return 2
  }
  const { address, model, plan, json } = options
  const { signal } = interrupted
  const write = (line: string): void => void process.stdout.write(`${line}\n`)
  try {
    const vault = openVault(address, signal)
    const listener = json ? {} : createPage(write, plan.dryRun)
    const all = await consolidate(vault, model, plan, { listener, signal })
    write(
      json
        ? JSON.stringify(reportOf(all, { model: model.model, dryRun: plan.dryRun }), null, 2)
        : sumOf(all, plan.dryRun),
    )
    return 0
  } catch (error) {
    if (signal.aborted) return 130
    if (!(error instanceof Refusal)) throw error
    process.stderr.write(`${error.message}\n${error.hint ? `${error.hint}\n` : ''}`)
    return 1
  }
}
