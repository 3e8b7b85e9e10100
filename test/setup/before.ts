// Runs before a run of all tests: starts the services and reserves them for the runner.
import { areDatabasesGiven, requestServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  const { connection } = await requestServices({ do: 'hold', pid: process.ppid })
  connection.destroy()
}
