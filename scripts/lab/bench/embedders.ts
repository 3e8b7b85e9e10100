/**
 * Measures the built-in embedder beside the models that `npm run embedding-model` has fetched, on the halves of the
 * project's sets that nothing was fitted to: recall, what memory does to messages, and what a text costs.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import models from '#scripts/embedding-models.json' with { type: 'json' }
import { blockShare, calibrationError, unhelpedKinds } from '#scripts/lab/bench/harm/figures.ts'
import { measureHalf } from '#scripts/lab/bench/harm/measure.ts'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'
import { buildVault } from '#scripts/lab/bench/recall/evaluation-vault.ts'
import { readConversation } from '#scripts/lab/bench/recall/conversation.ts'
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

const textsOfCall = 16
/** The fourth, `assistant`, has three quarters of all texts, nearly all of them filler. */
const vaultsAsked = ['friends', 'languages', 'exact'] as const
const triesMax = 20

/** `EMBEDDERS=local,all-minilm-l6-v2` measures these alone. */
const chosen = process.env.EMBEDDERS?.split(',')
const isChosen = (name: string): boolean => !chosen || chosen.includes(name)
const rows = isChosen('local') ? [await measure('local', localEmbedder(), process.pid)] : []
for (const { name } of models.filter(model => isChosen(model.name))) {
  const folder = join(modelsFolder, name)
  if (!existsSync(folder)) {
    console.log(`  ${name} was not fetched: npm run embedding-model -- ${name} --fetch-only`)
    continue
  }
  const port = await findFreePort()
  const server = fork('scripts/embedding-server.ts', [folder, '--port', String(port)])
  await once(server, 'message')
  const embedder = await again(() => open(name, port))
  const patient = remembering(name, embedder)
  const calibration = await measureCalibration(patient)
  rows.push(await measure(name, { ...patient, calibration }, server.pid!, embedder))
  server.disconnect()
}
console.log(`\n${toTable(columns, rows)}`)

function open(name: string, port: number): Promise<Embedder> {
  return openProviderEmbedder({
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
}

/** An embedder that keeps its vectors beside the model, and asks again where a busy machine was late. */
function remembering(name: string, embedder: Embedder): Embedder {
  const file = join(modelsFolder, `bench-${name}.jsonl`)
  const known = new Map<string, Float32Array>()
  for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []) {
    if (!line.endsWith('}')) continue
    const { key, vector } = JSON.parse(line) as { key: string; vector: string }
    known.set(key, new Float32Array(new Uint8Array(Buffer.from(vector, 'base64')).buffer))
  }
  const embed = async (
    kind: 'query' | 'text',
    texts: readonly string[],
    call: (some: string[]) => Promise<Float32Array[]>,
  ): Promise<Float32Array[]> => {
    // Queries are given little time.
    const size = kind === 'query' ? 1 : textsOfCall
    const missing = [...new Set(texts)].filter(text => !known.has(`${kind} ${text}`))
    for (let at = 0; at < missing.length; at += size) {
      const some = missing.slice(at, at + size)
      for (const [i, vector] of (await again(() => call(some))).entries()) {
        const key = `${kind} ${some[i]}`
        known.set(key, vector)
        const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)
        appendFileSync(file, `${JSON.stringify({ key, vector: bytes.toString('base64') })}\n`)
      }
    }
    return texts.map(text => known.get(`${kind} ${text}`)!)
  }
  const embedTexts: Embedder['embedTexts'] = (texts, signal) =>
    embed('text', texts, some => embedder.embedTexts(some, signal))
  const embedQueries: Embedder['embedQueries'] = (texts, signal) =>
    embed('query', texts, some => embedder.embedQueries(some, signal))
  return {
    ...embedder,
    embedEach: embedTexts,
    embedTexts,
    embedQueries,
    embedQuery: async (text, signal) => (await embedQueries([text], signal))[0]!,
  }
}

async function again<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await call()
    } catch (error) {
      if (tries === triesMax) throw error
    }
  }
}

/** @param pid the process that embeds */
async function measure(
  name: string,
  embedder: Embedder,
  pid: number,
  raw: Embedder = embedder,
): Promise<string[]> {
  const outcomes = await measureHalf('heldout', embedder, wrappings.slice(0, 1))
  const vaults = []
  for (const vault of vaultsAsked) vaults.push(await buildVault('heldout', vault, embedder))
  const cost = await costOf(raw, pid)
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

/** CPU of a text, in ms: mean of the turns of one conversation, embedded for this alone. */
async function costOf(embedder: Embedder, pid: number): Promise<number> {
  const texts = readConversation('heldout', 'friends').sessions.flatMap(({ turns }) =>
    turns.map(({ text }) => text),
  )
  const before = cpuMs(pid)
  for (let at = 0; at < texts.length; at += textsOfCall) {
    await again(() => embedder.embedTexts(texts.slice(at, at + textsOfCall)))
  }
  return (cpuMs(pid) - before) / texts.length
}

function percent(part: number): string {
  return (part * 100).toFixed(1)
}

/** CPU of a process by the kernel's accounting in ticks of 10 ms. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024)
}
