// Runs after a whole run of the tests: the services end, unless someone else is using them.
import { areGiven, askRunning } from '#test/setup/shared-set.ts'

if (!areGiven()) {
  // A keeper that ends answers by closing the connection, when everything is gone.
  const kept = await askRunning({ do: 'release', pid: process.ppid })
  kept?.connection.destroy()
}
