import t from 'tap'
import { labelledNotes } from '#shared/vault/read/search/exact-words.ts'
import type { CommandOutcome } from '#test/support/doubles/mongo-double.ts'
import { insertMemories, type MemoryFixture } from '#test/support/start/insert-memories.ts'
import { openSearchDeployment } from '#test/support/start/search-deployment.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.test('the pattern of labels finds their notes, with accents, in a list too', async t => {
  const { pattern } = labelledNotes(['name', 'prenom', 'strasse', 'e-mail', 'имя', 'геи'])
  for (const text of [
    'Name: Ada',
    'name = Ada',
    'Prénom : Ada',
    'Straße: Am Wall',
    'E-Mail：ada@example.org',
    'Notes\n- Name: Ada',
    'Имя: Ада',
    'гей: 1',
  ])
    t.match(text, new RegExp(pattern, 'iu'))
  for (const text of ['My name is Ada', 'The name: Ada', 'Surname: Byron', 'Name'])
    t.notMatch(text, new RegExp(pattern, 'iu'))
})

t.test('a vault that is searched in the database finds notes by their labels', async t => {
  const { backend, key, api, double, settle } = await openSearchDeployment(t)
  const day = 86_400_000
  const reports: MemoryFixture[] = Array.from({ length: 1_300 }, (_, n) => ({
    text: `The report number ${n} was filed under shelf ${n % 97}.`,
    at: Date.UTC(2025, 0, 1) + n * 60_000,
  }))
  const notes = ['Name: Ada', 'Prénom : Adèle', 'Имя: Ада', 'Home: Lisbon']
  await insertMemories(backend, key, [
    ...notes.map(text => ({ text, at: Date.UTC(2025, 0, 1) - day })),
    ...reports,
  ])
  await settle()
  const { rule } = double
  const loaded = Promise.withResolvers<void>()
  t.teardown(loaded.resolve)
  double.rule = async (name, command): Promise<CommandOutcome> => {
    if (name === 'find' && !command['filter']._id && !command['filter'].text) await loaded.promise
    return rule(name, command)
  }
  const prepare = async (content: string): Promise<string | null> =>
    (await api.post('/v1/memory/prepare', { messages: [{ role: 'user', content }] })).body.context

  /** Texts are read for 1.5 s, and a search that times out waits 50 s for the load: a slow machine may need more turns. */
  const isTold = async (note: string, question: string): Promise<void> => {
    const found = async () => ((await prepare(question)) ?? '').includes(`] ${note}\n`)
    await waitUntil(`${question} | ${note}`, found, 300_000)
    t.pass(`${question} | ${note}`)
  }
  for (const question of ['Who am I?', 'Hello! What is my name? Keep it short.', 'Кто я?'])
    for (const note of notes.slice(0, 3)) await isTold(note, question)
  await isTold('Home: Lisbon', 'Where is my home?')
  await waitUntil('nothing told', async () => (await prepare('Who are you?')) === null, 300_000)
  loaded.resolve()
})
