import t from 'tap'
import { finishAccountErasure } from '#shared/accounts/erase-account.ts'
import { rollUpKeyUsage } from '#shared/billing/usage-sums.postgres.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import {
  insertPastUsage,
  postponeJobs,
  rewindUsageRollUp,
} from '#test/support/checks/alter-jobs.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: allJobsBut('sweep') })
const { query } = backend.postgres

/** An account of a week with a member, and keys that were used two days ago. */
async function newAccount() {
  const team = await buildTeam(backend)
  await team.addMember('ada@example.com')
  const { account } = team
  await ageRows(backend, 'accounts', '7 days', { id: account })
  await insertPastUsage(backend, account, [2])
  const { rows } = await query<{ hash: Buffer }>(
    'select hash from memory_keys where account = $1',
    [account],
  )
  const hashes = rows.map(({ hash }) => hash)
  const admin = createTestClient(base, team.adminKey)
  return {
    admin,
    org: `/v1/orgs/${team.org}`,
    async countDays() {
      const of = 'select from usage_daily where key_hash = any($1)'
      return (await query(of, [hashes])).rowCount
    },
    /** @returns its operation; nothing ends it but the test. */
    async erase(): Promise<string> {
      const asked = await admin.post('/v1/account/erase', { email: team.email })
      t.equal(asked.status, 202)
      await postponeJobs(backend, 'account-erase')
      await waitUntilIdle(backend)
      return asked.body.receipt_id
    },
  }
}

t.test('the days of the key of a removed member are erased with the account', async t => {
  const { admin, org, erase, countDays } = await newAccount()
  await rewindUsageRollUp(backend, 'usage_rolled', 3)
  await rollUpKeyUsage(query)
  t.ok((await countDays()) > 1)
  const { users } = (await admin.get(`${org}/users`)).body
  t.equal((await admin.send('DELETE', `${org}/users/${users[0].user_id}`)).status, 200)
  const operation = await erase()
  t.ok(await finishAccountErasure(backend, { operation, look: 1 }))
  t.equal(await countDays(), 0)
})

t.test('a day that ends while its account is erased is not summed again', async t => {
  const { erase, countDays } = await newAccount()
  await rewindUsageRollUp(backend, 'usage_rolled', 3)
  const operation = await erase()
  await rollUpKeyUsage(query)
  t.equal(await countDays(), 0)
  t.ok(await finishAccountErasure(backend, { operation, look: 1 }))
  t.equal(await countDays(), 0)
})
