import { spawn } from 'node:child_process'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { runScript } from '#test/support/start/run-script.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { ageJob, giveUpJob, startJob } from '#test/support/checks/alter-jobs.ts'
import { operationState } from '#test/support/checks/observe-jobs.ts'
import { isBilled } from '#test/support/checks/observe.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const env = processEnvironment(backend.config)

const queues = (...args: string[]) => runScript('scripts/queues.ts', args, env)
const standing = async (name: string) => {
  const { out } = await queues('--json')
  const { queues: rows } = JSON.parse(out) as { queues: { name: string }[] }
  return rows.find(row => row.name === name)
}

const ingest = async (): Promise<string> => {
  const client = createTestClient(base, await buildKey(backend))
  const messages = [{ role: 'user', content: 'a word that nobody else may see' }]
  return (await client.post('/v1/memory/ingest', { messages })).body.operation_id as string
}

t.test('every queue with what waits and for how long', async t => {
  const job = await ingest()
  await ageJob(backend, job, '3 hours')
  t.match(await standing('ingest'), { waiting: 1, retrying: 0, active: 0, dead: 0 })
  const { out } = await queues()
  t.match(out, /^queue +waiting +held +retrying +at work +dead +oldest +longest +held for\n/)
  t.match(out, /\ningest +1 +0 +0 +0 +0 +3 h +- +-\n/)
  t.match(out, /\norg-extract +0 +0 +0 +0 +0 +- +- +-\n/)
  await queues('cancel', job)
})

t.test('dead letters are told without what they carry, put back, or cancelled', async t => {
  const [one, other] = [await ingest(), await ingest()]
  await giveUpJob(backend, one)
  await giveUpJob(backend, other)
  t.match(await standing('ingest'), { waiting: 0, dead: 2 })
  const { out: table } = await queues()
  t.match(table, /\ningest ! /)
  const { out } = await queues('dead', 'ingest')
  t.match(out, /ingest +\S+ +11 tries +the model was away\n/)
  t.notMatch(out, /nobody else/)
  const { dead } = JSON.parse((await queues('dead', '--json')).out) as { dead: { id: string }[] }
  t.equal(dead.length, 2)

  const redriven = await queues('redrive', 'ingest', '--id', dead[0]!.id)
  t.match(redriven, { code: 0, out: '1 job put back\n' })
  t.match(await standing('ingest'), { waiting: 1, dead: 1 })
  t.match(await queues('cancel', dead[1]!.id), { code: 0, out: /cancelled\n/ })
  t.match(await standing('ingest'), { waiting: 1, dead: 0 })
  const states = [await operationState(backend, one), await operationState(backend, other)]
  t.same(states.toSorted(), ['accepted', 'cancelled'])
  t.match(await queues('redrive', 'all'), { code: 0, out: '0 jobs put back\n' })
  t.match(await queues('dead'), { code: 0, out: 'No dead letters\n' })
  await queues('cancel', one)
})

t.test('waiting work is cancelled with its bill, what is at work is not', async t => {
  const [waiting, working] = [await ingest(), await ingest()]
  await startJob(backend, working)
  t.match(await queues('cancel', waiting, '--json'), {
    code: 0,
    out: JSON.stringify({ cancelled: [{ id: waiting, removed: 1, active: 0 }] }),
  })
  t.notOk(await isBilled(backend, waiting))
  t.match(await queues('cancel', working), { code: 1, out: /is at work and cannot/ })
  t.match(await queues('cancel', mintId()), { code: 1, out: /no job waits or has failed/ })
  t.match(await queues('redrive', 'ingest', '--id', mintId()), { code: 1 })
})

t.test('wrong words are told, help helps, and watching goes on until stopped', async t => {
  t.match(await queues('redrive'), { code: 2, err: /redrive needs a queue[\s\S]*--help/ })
  t.match(await queues('redrive', 'nothing'), {
    code: 2,
    err: /No such queue: nothing\. Queues: in/,
  })
  t.match(await queues('cancel', "'; drop table"), { code: 2, err: /Not an id/ })
  t.match(await queues('fly', '--limit', '0', '--watch', '0'), {
    code: 2,
    err: /No such command: fly\n--limit must[\s\S]*--watch must/,
  })
  t.match(await queues('--depth'), { code: 2, err: /--depth/ })
  t.match(await queues('--help'), { code: 0, out: /Usage:[\s\S]*redrive <queue …>/ })

  const watching = spawn(process.execPath, ['scripts/queues.ts', '--watch', '0.1', '--json'], {
    env,
  })
  let said = ''
  watching.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = new Promise(resolve => watching.once('close', resolve))
  await waitUntil('three looks', () => said.split('\n').length > 3)
  watching.kill('SIGTERM')
  await ended
  t.ok(
    said
      .split('\n')
      .slice(0, 3)
      .every(line => Array.isArray(JSON.parse(line).queues)),
  )
})
