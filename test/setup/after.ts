// Runs after a run of all tests: releases the services, which end unless another process uses them.
import { areDatabasesGiven, requestRunningServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  // A keeper that ends closes the connection after its services have ended.
  const response = await requestRunningServices({ do: 'release', pid: process.ppid })
  response?.connection.destroy()
}
