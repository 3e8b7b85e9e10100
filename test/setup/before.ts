// Runs before a whole run of the tests: starts the services and keeps them for the runner.
import { areGiven, askKeeper } from '#test/setup/shared-set.ts'

if (!areGiven()) {
  const { connection } = await askKeeper({ do: 'hold', pid: process.ppid })
  connection.destroy()
}
