import t from 'tap'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { buildOrg } from '#test/support/start/admin.ts'
import { connectDirectory } from '#test/support/start/scim.ts'
import { startService } from '#test/support/start/start-service.ts'

/**
 * The conformance check of python-scim, `scim2-tester` (PyPI), which reads what the service says of itself and tries it.
 * `SCIM_PYTHON` names a Python that has it: `python3 -m venv scim && scim/bin/pip install scim2-tester==0.5.2 httpx2`.
 */
const python = process.env.SCIM_PYTHON ?? ''
const skip = existsSync(python) ? false : 'SCIM_PYTHON names no Python with scim2-tester'

const program = `
import json, sys
from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server
client = SyncSCIMClient(Client(base_url=sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]}, timeout=60))
client.discover()
results = check_server(client)
print(json.dumps([[r.status.name, r.title, r.reason] for r in results], default=str))
`

/** What the check wants otherwise, as title and reason. */
const meant: [RegExp, RegExp][] = [
  // Entra compares what it reads with emails[type eq "work"], so that an email is told with the type that it has here.
  [
    /^check_(?:add|replace)_attribute$/,
    /for 'emails'.*\n.*type=None.*\n.*type='work', primary=True/,
  ],
  // Who is not said to be active is not let in, and is shown so.
  [/^check_remove_attribute$/, /'active'$/],
]

t.test('no check of scim2-tester fails', { skip }, async t => {
  const { backend, base } = await startService(t, { jobs: ['clear'] })
  const { admin, path } = await buildOrg(backend, base)
  const { token } = await connectDirectory(admin, path)
  const { stdout } = await promisify(execFile)(python, ['-c', program, `${base}/scim/v2`, token])
  const results = JSON.parse(stdout.trim().split('\n').at(-1)!) as string[][]
  const isMeant = ([, title = '', reason = '']: string[]): boolean =>
    meant.some(([of, pattern]) => of.test(title) && pattern.test(reason))
  const failed = results.filter(
    result => ['ERROR', 'CRITICAL'].includes(result[0]!) && !isMeant(result),
  )
  t.same(failed, [])
  t.ok(results.filter(([status]) => status === 'SUCCESS').length > 50, `${results.length} checks`)
})
