// Runs after a whole run of the tests: the services end, unless someone else is using them.
import { areDatabasesGiven, requestRunningServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  // A keeper that ends answers by closing the connection, when everything is gone.
  const kept = await requestRunningServices({ do: 'release', pid: process.ppid })
  kept?.connection.destroy()
}
