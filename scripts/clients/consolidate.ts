import { readOptions } from '#scripts/clients/consolidate/options.ts'
import {
  createConsoleReporter,
  toJsonReport,
  formatSummary,
} from '#scripts/clients/consolidate/report.ts'
import { consolidate } from '#scripts/clients/consolidate/run.ts'
import { createConsolidationClient } from '#scripts/clients/consolidate/client.ts'
import { Refusal } from '#shared/core/errors.ts'

const abortController = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => abortController.abort())
// The reader of the output may close it early, as `head` does.
process.stdout.on('error', () => abortController.abort())

process.exitCode = await main()

async function main(): Promise<number> {
  const { connection, model, plan, json } = readOptions()
  const { signal } = abortController
  const write = (line: string): void => void process.stdout.write(`${line}\n`)
  try {
    const client = createConsolidationClient(connection, signal)
    const listener = json ? {} : createConsoleReporter(write, plan.dryRun)
    const results = await consolidate(client, model, plan, { listener, signal })
    write(
      json
        ? JSON.stringify(
            toJsonReport(results, { model: model.model, dryRun: plan.dryRun }),
            null,
            2,
          )
        : formatSummary(results, plan.dryRun),
    )
    return 0
  } catch (error) {
    if (signal.aborted) return 130
    if (!(error instanceof Refusal)) throw error
    process.stderr.write(`${error.message}\n${error.hint ? `${error.hint}\n` : ''}`)
    return 1
  }
}
