import t from 'tap'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { listKeptFiles } from '#shared/vault/bulk/kept-files.postgres.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { removeEarlierVersion } from '#shared/vault/delete/remove-earlier-version.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { readUsageEvents } from '#test/support/start/consolidation.ts'
import { pictureOf } from '#test/support/start/documents.ts'
import { startRecordingServer } from '#test/support/doubles/recording-server.ts'
import { countRows, vaultRow } from '#test/support/checks/observe.ts'
import { killAtSteps, type Scene } from '#test/support/checks/kill-at-step.ts'
import { countAcceptedFiles, jobsOf } from '#test/support/checks/observe-jobs.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)

/** How many files of a vault are kept, or will be. */
const countKept = async ({ backend }: Scene, vault: string): Promise<number> =>
  (await listKeptFiles(backend.postgres.query, vault)).length

killAtSteps(t, {
  'a newer version of a file is stored: the earlier one goes when all of it is there': {
    killed: 'worker',
    async begin(t, open) {
      const scene = await open()
      const { backend, base } = scene
      const key = await scene.newKey()
      const client = createTestClient(base, key)
      const { vault } = await readVaultScope(backend, key)
      await client.send('PUT', '/v1/account/policy', { body: { keep_files: true } })
      const kept = async (): Promise<string> => {
        const path = '/v1/memory/files/content?file_id='
        const [file] = (await client.get('/v1/memory/files')).body.items
        return (await client.get(path + file.file_id)).body
      }
      const paragraphs = (from: number): string[] =>
        Array.from({ length: 450 }, (_, n) => `Paragraph ${from + n} ${'says so '.repeat(120)}.`)
      const send = async (texts: string[]): Promise<string> => {
        const headers = { prefer: 'respond-async', 'content-type': 'text/plain' }
        const body = texts.join('\n\n')
        const path = '/v1/memory/files?name=a.txt'
        return (await client.send('POST', path, { headers, body })).body.operation_id
      }
      const texts = async (): Promise<string[]> => {
        const { body } = await client.get('/v1/memory/export')
        return body.map(({ content }: { content: string }) => content).sort()
      }
      await send(paragraphs(0))
      for (const _ of ['its steps', 'the last one'])
        for (const { data } of await jobsOf<StepJob>(backend, 'upload')) {
          const step = await storeChunk(backend, data)
          if (step.state === 'removes-earlier') await removeEarlierVersion(backend, step.chunk)
        }
      const earlier = await texts()
      t.equal(earlier.length, 450)
      const whole = paragraphs(0).join('\n\n')
      t.equal(await kept(), whole)
      let operation = ''
      const isWhole = async (): Promise<void> => {
        const told = new Set(await texts())
        t.ok(
          earlier.every(text => told.has(text)),
          'the earlier version is told',
        )
        t.equal(await kept(), whole, 'and given')
      }
      return {
        steps: [
          {
            at: `before 2 insert ${vault}`,
            before: async () => void (operation = await send(paragraphs(400))),
          },
          // Its last step: the pieces of the earlier version have become tombstones, and nothing has settled.
          { at: 'before 1 find tomb_by', before: isWhole },
        ],
        async afterwards() {
          const told = async () => (await client.get(`/v1/operations/${operation}`)).body
          await waitUntil('it is stored', async () => (await told()).state === 'done')
          t.match((await told()).outcome.body.stats, { memories: 450, stored: 400, skipped: 50 })
          t.same(await texts(), paragraphs(400).sort())
          t.equal(await kept(), paragraphs(400).join('\n\n'))
          t.equal(await countKept(scene, vault), 1)
          t.equal(await countAcceptedFiles(backend, vault), 0)
        },
      }
    },
  },

  'a file is to be kept: it is there with its upload, or nothing of it is': {
    killed: 'api',
    working: true,
    async begin(t, open) {
      const scene = await open()
      const { backend, base } = scene
      const key = await scene.newKey()
      const client = createTestClient(base, key)
      const { vault } = await readVaultScope(backend, key)
      await client.send('PUT', '/v1/account/policy', { body: { keep_files: true } })
      const body = `The lease runs. ${'And so on. '.repeat(200_000)}`
      const send = (to: string) =>
        createTestClient(to, key).send('POST', '/v1/memory/files?name=a.txt&file_id=a', {
          headers: { 'content-type': 'text/plain' },
          body,
        })
      const content = () => client.get('/v1/memory/files/content?file_id=a')
      return {
        steps: [
          { at: `before 1 commit ${vault}`, during: send },
          {
            before: async () => void t.equal((await content()).status, 404),
            at: `after 1 commit ${vault}`,
            during: send,
          },
        ],
        async afterwards() {
          await waitUntil('it is kept', async () => (await content()).status === 200)
          t.equal((await content()).body, body)
          t.equal(await countKept(scene, vault), 1)
        },
      }
    },
  },

  'a picture is described: one memory and one bill, and it is asked about until that is stored': {
    killed: 'worker',
    async begin(t, open) {
      const choices = [{ message: { content: '{"caption":"A crane."}' }, finish_reason: 'stop' }]
      const eyes = await startRecordingServer(t, async (_, answer) => {
        answer.head(200, { 'content-type': 'application/json' })
        await answer.write(JSON.stringify({ choices, usage: { prompt_tokens: 9 } }))
        answer.end()
      })
      const address = { EYES_BASE_URL: `${eyes.origin}/v1` }
      const scene = await open({ PROVIDERS: 'eyes', CAPTIONS: 'eyes/one', ...address })
      const { backend, base } = scene
      const key = await scene.newKey()
      const client = createTestClient(base, key)
      const { vault } = await readVaultScope(backend, key)
      const headers = { prefer: 'respond-async', 'content-type': 'image/png' }
      const body = pictureOf('png', 'crane')
      const sent = await client.send('POST', '/v1/memory/files?name=a.png', { headers, body })
      const operation: string = sent.body.operation_id
      return {
        steps: [{ at: `before 1 insert ${vault}` }, { at: `before 1 commit ${operation}` }],
        async afterwards() {
          const told = async () => (await client.get(`/v1/operations/${operation}`)).body
          await waitUntil('it is stored', async () => (await told()).state === 'done')
          t.match((await told()).outcome.body.stats, { memories: 1, stored: 1 })
          const { body: lines } = await client.get('/v1/memory/export')
          t.match(lines, [{ content: 'Picture: A crane.' }])
          t.equal(eyes.requests.length, 2)
          t.equal((await readUsageEvents(backend, vault, 'caption')).length, 1)
          const { rawTokens } = await vaultRow(backend, vault)
          t.match(await readUsageEvents(backend, vault, 'upload'), [{ tokens: rawTokens }])
          t.equal(await countRows(backend, { table: 'kept_files', vault }), 0)
        },
      }
    },
  },
})
