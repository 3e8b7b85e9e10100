/**
 * Measures the built-in embedder beside the models that `npm run embedding-model` has fetched, on the halves of the
 * project's sets that nothing was fitted to: recall, what memory does to messages, and what a text costs.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import models from '#scripts/embedding-models.json' with { type: 'json' }
import { blockShare, calibrationError, unhelpedKinds } from '#scripts/lab/bench/harm/figures.ts'
import { measureHalf } from '#scripts/lab/bench/harm/measure.ts'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'
import { buildVault, vaultNames } from '#scripts/lab/bench/recall/evaluation-vault.ts'
import { measureRecall } from '#scripts/lab/bench/recall/measure.ts'
import { methods } from '#scripts/lab/bench/recall/methods.ts'
import { toTable } from '#scripts/lab/scores/table.ts'
import { modelsFolder } from '#scripts/load-embedding-model.ts'
import { findFreePort } from '#scripts/services/postgres.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { measureCalibration } from '#shared/models/calibration/calibrate-embedder.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { openProviderEmbedder } from '#shared/models/openai-embedder.ts'

const kinds = ['answerable', ...unhelpedKinds, 'cross-language'] as const
const columns = ['', 'R@1', 'R@5', 'R@10', ...kinds, 'calibration error', 'CPU a text', 'memory']

const rows = [await measure('local', localEmbedder(), process.pid)]
for (const { name } of models) {
  const folder = join(modelsFolder, name)
  if (!existsSync(folder)) {
    console.log(`  ${name} was not fetched: npm run embedding-model -- ${name} --fetch-only`)
    continue
  }
  const port = await findFreePort()
  const server = fork('scripts/embedding-server.ts', [folder, '--port', String(port)])
  await once(server, 'message')
  rows.push(await measure(name, await open(name, port), server.pid!))
  server.disconnect()
}
console.log(`\n${toTable(columns, rows)}`)

async function open(name: string, port: number): Promise<Embedder> {
  const embedder = await openProviderEmbedder({
    model: `offline/${name}`,
    name,
    apiKey: '',
    provider: {
      name: 'offline',
      baseUrl: `http://127.0.0.1:${port}/v1`,
      isAddressSet: true,
      isAzure: false,
      responses: true,
      selfHosted: true,
    },
  })
  // On a busy machine a query may be late.
  const patient: Embedder = {
    ...embedder,
    embedQuery: async (text, signal) => (await patient.embedQueries([text], signal))[0]!,
    async embedQueries(texts, signal) {
      for (let tries = 0; ; tries++) {
        try {
          return await embedder.embedQueries(texts, signal)
        } catch (error) {
          if (tries === 20) throw error
        }
      }
    },
  }
  return { ...patient, calibration: await measureCalibration(patient) }
}

/** @param pid the process that embeds */
async function measure(name: string, embedder: Embedder, pid: number): Promise<string[]> {
  const outcomes = await measureHalf('heldout', embedder, wrappings.slice(0, 1))
  const vaults = []
  let texts = 0
  const before = cpuMs(pid)
  const counted: Embedder = {
    ...embedder,
    embedTexts(all, signal) {
      texts += all.length
      return embedder.embedTexts(all, signal)
    },
  }
  for (const vault of vaultNames) vaults.push(await buildVault('heldout', vault, counted))
  const cost = (cpuMs(pid) - before) / texts
  const memory = residentMiB(pid)
  const everything = methods['with everything']!
  const { recall } = measureRecall(vaults, everything, embedder.calibration).get('all')!
  return [
    name,
    ...[recall[1], recall[5], recall[10]].map(percent),
    ...kinds.map(kind => percent(blockShare(outcomes, kind, 'bare'))),
    calibrationError(outcomes).toFixed(3),
    `${cost.toFixed(1)} ms`,
    name === 'local' ? 'none' : `${memory} MiB`,
  ]
}

function percent(part: number): string {
  return (part * 100).toFixed(1)
}

/** Of a process, by the kernel's accounting in ticks of 10 ms; the built-in embedder's with the index that it fills. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024)
}
