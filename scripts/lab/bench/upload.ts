import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { MongoClient } from 'mongodb'
import { median, quantile, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { createPoster, startProcess, type RunningProcess } from '#scripts/lab/bench/process.ts'
import {
  createBenchKey,
  openBenchService,
  randomSentence,
} from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

const lines = 10_000
const rounds = 3

const { env, config, backend } = await openBenchService()
const next = seededRandom(4)
const embedder = await backend.embedders.get()
const mongo = await new MongoClient(config.mongodbUri).connect()
const memories = mongo.db().collection('memories')

const web = await startProcess('api/index.ts', env)
const worker = await startProcess('workers/index.ts', env, ['upload'])
// A first upload outside of the measurement: it loads code and the embedding model.
await uploadFile(web, await createBenchKey(backend, config), toNdjson(generateLines(200)))

const figures: Record<'floor' | 'stored' | 'searchable' | 'embedding', number[]> = {
  floor: [],
  stored: [],
  searchable: [],
  embedding: [],
}
const growth: number[] = []
for (let round = 0; round < rounds; round++) {
  const key = await createBenchKey(backend, config)
  const fileLines = generateLines(lines)
  const file = toNdjson(fileLines)
  const before = residentMemory(web)
  const watched = watchResidentMemory(web)
  const stored = await measureSeconds(() => uploadFile(web, key, file))
  growth.push((await watched.peak()) - before)
  const last = fileLines.at(-1)!.content
  const search = createPoster(web.port, '/v1/memory/search', key)
  const firstSearch = await measureSeconds(async () => {
    const { text } = await search(JSON.stringify({ query: last, limit: 1 }))
    if (!text.includes(last)) throw new Error('the last line cannot be found')
  })
  const embedding = await measureSeconds(async () => {
    for (let start = 0; start < lines; start += 100) {
      await embedder.embedTexts(fileLines.slice(start, start + 100).map(({ content }) => content))
    }
  })
  figures.floor.push(lines / (await timeBareInsert(round)))
  figures.stored.push(lines / stored)
  figures.searchable.push(lines / (stored + firstSearch))
  figures.embedding.push(lines / embedding)
}
const floor = median(figures.floor)
const stored = median(figures.stored)
const searchable = median(figures.searchable)
const embeddingRate = median(figures.embedding)
report('floor: bare insertMany of the same documents', floor, { unit: '/s' })
report('uploaded over HTTP until all are stored and may be searched', stored, { unit: '/s' })
report('the local embedder alone', embeddingRate, { unit: '/s' })
report('uploaded / floor', stored / floor, { bar: { least: 0.5 } })
report(
  'uploaded / floor, without the embedder’s share',
  1 / (1 / stored - 1 / embeddingRate) / floor,
)
report('uploaded and found by a first search, which loads the index / floor', searchable / floor)
report('growth of the web process during 10,000 lines', Math.max(...growth), {
  unit: 'MiB',
  bar: { most: 64 },
})

await measureLargestFile()
await measureSearchDuringUpload()
await web.stop()
await worker.stop()
await backend.close()
await mongo.close()

function generateLines(count: number) {
  return Array.from({ length: count }, (_, n) => ({
    content: randomSentence(40, next),
    timestamp: 1_700_000_000_000 + n * 60_000,
  }))
}

function toNdjson(values: readonly object[]): Buffer {
  return Buffer.from(values.map(line => JSON.stringify(line)).join('\n'))
}

/** Inserts the documents of the newest operation again, with the same indexes. @returns seconds. */
async function timeBareInsert(round: number): Promise<number> {
  const [newest] = await memories.find().sort({ stored_at: -1 }).limit(1).toArray()
  const stored = await memories.find({ operation: newest!['operation'] as string }).toArray()
  const bare = mongo.db().collection(`bare_upload_${round}`)
  for (const { name, key, v: _, ...options } of await memories.indexes()) {
    if (name !== '_id_') await bare.createIndex(key, { name: name!, ...options })
  }
  return measureSeconds(async () => {
    for (let start = 0; start < stored.length; start += 500) {
      const batch = stored.slice(start, start + 500)
      await bare.insertMany(batch, { ordered: false, writeConcern: { w: 1, journal: true } })
    }
  })
}

async function measureSeconds(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1_000
}

/** The largest file, 64 MiB in 10,000 lines: all lines are faulty, so that only reading is measured. */
async function measureLargestFile(): Promise<void> {
  const key = await createBenchKey(backend, config)
  const line = `${JSON.stringify({ content: 'x'.repeat(6_600), role: 'nobody' })}\n`
  const before = residentMemory(web)
  const watched = watchResidentMemory(web)
  const startedAt = performance.now()
  await uploadFile(web, key, Buffer.from(line.repeat(lines)))
  report('a file of 64 MiB, taken in', performance.now() - startedAt, { unit: 'ms' })
  report('growth of the web process during 64 MiB', (await watched.peak()) - before, {
    unit: 'MiB',
    bar: { most: 64 },
  })
}

/** Measures searches of another vault while an upload runs. */
async function measureSearchDuringUpload(): Promise<void> {
  const [searcher, uploader] = [
    await createBenchKey(backend, config),
    await createBenchKey(backend, config),
  ]
  await uploadFile(web, searcher, toNdjson(generateLines(2_000)))
  const post = createPoster(web.port, '/v1/memory/search', searcher)
  const search = () => post(JSON.stringify({ query: randomSentence(6, next), limit: 10 }))
  const idle = await timeRuns(200, search)
  const busy: number[] = []
  const running = new Set(['upload'])
  const uploading = uploadFile(web, uploader, toNdjson(generateLines(lines))).finally(() =>
    running.clear(),
  )
  while (running.size > 0) {
    const startedAt = performance.now()
    await search()
    busy.push(performance.now() - startedAt)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  await uploading
  report('search, p95, idle', quantile(idle, 0.95), { unit: 'ms' })
  report('search, p95, while an upload runs', quantile(busy, 0.95), { unit: 'ms' })
  report('search p95, during an upload / idle', quantile(busy, 0.95) / quantile(idle, 0.95), {
    bar: { most: 3 },
  })
}

/** Uploads a file and waits until it is stored. */
function uploadFile({ port }: RunningProcess, key: string, file: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request(
      {
        port,
        host: '127.0.0.1',
        path: '/v1/memory/upload',
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/x-ndjson',
          'content-length': file.length,
        },
      },
      answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', piece => (text += piece))
        answer.on('end', () =>
          answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode} ${text}`)),
        )
      },
    )
    sending.on('error', reject)
    sending.end(file)
  })
}

/** Resident memory of a process, in MiB. */
function residentMemory({ child }: RunningProcess): number {
  const status = readFileSync(`/proc/${child.pid!}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}

/** Samples the resident memory of a process until its peak is asked for. */
function watchResidentMemory(process: RunningProcess) {
  let peak = 0
  const sample = (): void => void (peak = Math.max(peak, residentMemory(process)))
  const timer = setInterval(sample, 20)
  return {
    now: (): number => residentMemory(process),
    async peak(): Promise<number> {
      clearInterval(timer)
      sample()
      return peak
    },
  }
}
