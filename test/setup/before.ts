// Runs before a whole run of the tests: starts the services and keeps them for the runner.
import { areDatabasesGiven, requestServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  const { connection } = await requestServices({ do: 'hold', pid: process.ppid })
  connection.destroy()
}
