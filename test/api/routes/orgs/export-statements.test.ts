import { Readable } from 'node:stream'
import t from 'tap'
import { verifyExportFile } from '#shared/accounts/verify-export-file.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

const { backend, base, newTeam } = await startTeamService(t)

type Line = { type: string; [field: string]: unknown }

const linesOf = async (acme: WorkingTeam): Promise<Line[]> =>
  (await acme.admin.get(`/v1/orgs/${acme.org}/export`)).body
const statementsOf = async (acme: WorkingTeam): Promise<Line[]> =>
  (await linesOf(acme)).filter(({ type }) => type === 'shared_statement')

t.test('200: what members said is in the export, with the memory that has it', async t => {
  const [acme, other] = [await newTeam(), await newTeam()]
  const bob = await acme.addMember('bob@example.com', ['Everything'])
  await other.share('Fact: elsewhere: it rains')
  const said = Date.now() - 86_400_000
  const { id: turn } = await acme.share('Fact: launch: in May', { timestamp: said })
  await acme.share('Fact: launch: in June', { as: bob })
  await acme.share('Fact: launch: in June')
  const { user_id: ada } = (await acme.admin.get(`/v1/orgs/${acme.org}/users`)).body.users.find(
    ({ roles }: { roles: object[] }) => roles.length > 0,
  )
  const [memory] = await acme.memories()
  const statements = await statementsOf(acme)
  t.match(statements, [
    {
      org_id: acme.org,
      user_id: ada,
      author: 'ada@example.com',
      turn_id: turn,
      mem_id: memory!.id,
      action: 'ADD',
      outdated: false,
      text: 'launch: in May',
      said_at: said,
      recorded_at: Number,
    },
    { author: 'bob@example.com', action: 'UPDATE', text: 'launch: in June', mem_id: memory!.id },
    { author: 'ada@example.com', action: 'NONE', text: 'launch: in June', mem_id: memory!.id },
  ])
  t.equal(statements.length, 3)
  const lines = await linesOf(acme)
  t.match(lines.at(-1), { type: 'end', counts: { shared_statement: 3 } })
  const file = Readable.from(lines.map(line => JSON.stringify(line)))
  t.match(await verifyExportFile(file, []), { fault: null })
})

t.test('200: nothing that was taken back, and nothing of a deleted memory', async t => {
  const acme = await newTeam()
  await acme.share('Fact: roof: leaks')
  await acme.share('Fact: door: is green')
  await acme.share('Fact: gate: is shut')
  await ageRows(backend, 'shared_statements', '10 minutes')
  const ada = createTestClient(base, acme.key)
  const { items } = (await ada.get('/v1/shares')).body
  const roof = items.find(({ text }: { text: string }) => text.startsWith('roof'))
  t.equal((await ada.send('DELETE', `/v1/shares/${roof.id}`)).status, 200)
  const door = (await acme.memories()).find(({ text }) => text.startsWith('door'))!
  const path = `/v1/orgs/${acme.org}/memories/${door.id}`
  t.equal((await acme.admin.send('DELETE', path)).status, 200)
  t.match(await statementsOf(acme), [{ text: 'gate: is shut' }])
  t.equal((await statementsOf(acme)).length, 1)
  t.notMatch(JSON.stringify(await linesOf(acme)), /leaks|is green/)
})
