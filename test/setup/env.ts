// Imported by every test that needs the services: sets DATABASE_URL and MONGODB_URI. A single test
// file starts the services, or uses those that still run.
import { withConnectDeadlines } from '#test/setup/connect-deadlines.ts'
import { areDatabasesGiven, requestServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  const { addresses, connection } = await requestServices({ lingers: true })
  process.env['DATABASE_URL'] = withConnectDeadlines(addresses.databaseUrl)
  process.env['MONGODB_URI'] = withConnectDeadlines(addresses.mongodbUri)
  // Stays open until this process ends, but does not keep it alive.
  connection.unref()
}
