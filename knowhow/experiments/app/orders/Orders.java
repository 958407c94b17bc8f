// An order-entry shop: pages of a catalogue, and orders of customers, in a PostgreSQL.
// Usage: Orders PORT CONNECTIONS URL [OPTION=VALUE...]. With 0 connections in the pool, each request opens one.
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.StackTrace;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.jdbc.pool.DataSource;

public final class Orders extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final String SUBJECT =
        "SELECT item_id, title, cents FROM items WHERE subject = ? ORDER BY title, item_id LIMIT 20";
    private static final String ITEM = "SELECT item_id, title, cents FROM items WHERE item_id = ?";
    private static final String SEARCH =
        "SELECT item_id, title, cents FROM items WHERE title LIKE ? || '%' ORDER BY title, item_id LIMIT 20";
    private static final String HISTORY =
        "SELECT o.order_id, count(*), sum(l.quantity), o.cents FROM orders o JOIN order_lines l ON l.order_id = o.order_id"
        + " WHERE o.customer_id = ? GROUP BY o.order_id ORDER BY o.order_id DESC LIMIT 10";

    /** A call of a method, from its beginning to its end, for Flight Recorder. */
    @Name("Call")
    @StackTrace(false)
    static final class Call extends Event implements AutoCloseable {
        String method;

        static Call of(String method) {
            Call call = new Call();
            call.method = method;
            call.begin();
            return call;
        }

        @Override
        public void close() {
            commit();
        }
    }

    private final String url;
    /** null: each request opens a connection. */
    private final DataSource pool;
    private Recording recording;
    private long cpuNs;
    private long collectedMs;

    private Orders(String url, int connections) {
        this.url = url;
        pool = connections == 0 ? null : new DataSource();
        if (pool != null) {
            pool.setDriverClassName("org.postgresql.Driver");
            pool.setUrl(url);
            pool.setInitialSize(0);
            pool.setMinIdle(0);
            pool.setMaxIdle(connections);
            pool.setMaxActive(connections);
        }
    }

    public static void main(String[] words) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(".");
        tomcat.setHostname("127.0.0.1");
        tomcat.getConnector().setPort(Integer.parseInt(words[0]));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().setProperty("maxKeepAliveRequests", "-1");
        tomcat.getConnector().setProperty("keepAliveTimeout", "600000");
        Context context = tomcat.addContext("", Path.of(".").toAbsolutePath().toString());
        Orders orders = new Orders(words[2], Integer.parseInt(words[1]));
        Tomcat.addServlet(context, "orders", orders).addMapping("/*");
        tomcat.start();
        tomcat.getServer().await();
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            switch (request.getMethod() + " " + request.getRequestURI()) {
                case "POST /begin" -> begin(response);
                case "POST /end" -> end(response);
                default -> {
                    try (Call call = Call.of("Orders.answer")) {
                        answer(request, response);
                    }
                }
            }
        } catch (SQLException | InterruptedException error) {
            log("request failed", error);
            response.sendError(500, error.getMessage());
        } catch (IllegalArgumentException error) {
            response.sendError(400, error.getMessage());
        }
    }

    private void answer(HttpServletRequest request, HttpServletResponse response) throws SQLException, IOException {
        switch (request.getMethod() + " " + request.getRequestURI()) {
            case "GET /subject" -> page(response, SUBJECT, Integer.valueOf(request.getParameter("subject")));
            case "GET /item" -> page(response, ITEM, Integer.valueOf(request.getParameter("item")));
            case "GET /search" -> page(response, SEARCH, request.getParameter("title"));
            case "GET /orders" -> page(response, HISTORY, Integer.valueOf(request.getParameter("customer")));
            case "POST /order" -> order(request, response);
            default -> response.sendError(404);
        }
    }

    /** A table of what a query finds. */
    private void page(HttpServletResponse response, String query, Object value) throws SQLException, IOException {
        StringBuilder text = new StringBuilder("<!DOCTYPE html><title>Shop</title><table>\n");
        try (Connection connection = connect(); PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setObject(1, value);
            try (ResultSet rows = find(statement)) {
                int columns = rows.getMetaData().getColumnCount();
                while (rows.next()) {
                    text.append("<tr>");
                    for (int column = 1; column <= columns; column++) {
                        text.append("<td>").append(rows.getString(column).replace("&", "&amp;").replace("<", "&lt;"));
                    }
                    text.append('\n');
                }
            }
        }
        send(response, 200, text.append("</table>\n").toString());
    }

    /** An order: `item` and `quantity` as often as it has lines. It is on the disk before it is acknowledged. */
    private void order(HttpServletRequest request, HttpServletResponse response) throws SQLException, IOException {
        int customer = Integer.parseInt(request.getParameter("customer"));
        String[] items = request.getParameterValues("item");
        String[] quantities = request.getParameterValues("quantity");
        if (items == null || quantities == null || items.length != quantities.length) {
            throw new IllegalArgumentException("an order has an item and a quantity in each line");
        }
        // Sorted, so that no two orders lock stock in different orders.
        TreeMap<Integer, Integer> wanted = new TreeMap<>();
        for (int place = 0; place < items.length; place++) {
            wanted.merge(Integer.valueOf(items[place]), Integer.valueOf(quantities[place]), Integer::sum);
        }
        long id;
        long cents = 0;
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            try {
                List<Integer> prices = prices(connection, wanted);
                int place = 0;
                for (int quantity : wanted.values()) {
                    cents += (long) quantity * prices.get(place++);
                }
                cents = cents * (100 - discount(connection, customer)) / 100;
                id = insert(connection, customer, cents, wanted, prices);
                take(connection, wanted);
                commit(connection);
            } catch (SQLException | RuntimeException error) {
                connection.rollback();
                throw error;
            } finally {
                connection.setAutoCommit(true);
            }
        }
        response.setHeader("Order-Lines", Integer.toString(wanted.size()));
        response.setHeader("Order-Cents", Long.toString(cents));
        send(response, 201, "<!DOCTYPE html><title>Shop</title>Order " + id + "\n");
    }

    private int discount(Connection connection, int customer) throws SQLException {
        String query = "SELECT discount_percent FROM customers WHERE customer_id = ?";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setInt(1, customer);
            try (ResultSet rows = find(statement)) {
                if (!rows.next()) {
                    throw new IllegalArgumentException("no such customer");
                }
                return rows.getInt(1);
            }
        }
    }

    /** Of items in the order of their numbers. */
    private List<Integer> prices(Connection connection, TreeMap<Integer, Integer> wanted) throws SQLException {
        String query = "SELECT cents FROM items WHERE item_id = ANY (?) ORDER BY item_id";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setArray(1, connection.createArrayOf("integer", wanted.keySet().toArray()));
            List<Integer> prices = new ArrayList<>();
            try (ResultSet rows = find(statement)) {
                while (rows.next()) {
                    prices.add(rows.getInt(1));
                }
            }
            if (prices.size() != wanted.size()) {
                throw new IllegalArgumentException("no such item");
            }
            return prices;
        }
    }

    private long insert(
            Connection connection, int customer, long cents, TreeMap<Integer, Integer> wanted, List<Integer> prices)
            throws SQLException {
        long id;
        String order = "INSERT INTO orders (customer_id, cents) VALUES (?, ?) RETURNING order_id";
        try (PreparedStatement statement = connection.prepareStatement(order)) {
            statement.setInt(1, customer);
            statement.setLong(2, cents);
            try (ResultSet rows = find(statement)) {
                rows.next();
                id = rows.getLong(1);
            }
        }
        String line = "INSERT INTO order_lines (order_id, line, item_id, quantity, cents) VALUES (?, ?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(line)) {
            int number = 0;
            for (var each : wanted.entrySet()) {
                statement.setLong(1, id);
                statement.setInt(2, number + 1);
                statement.setInt(3, each.getKey());
                statement.setInt(4, each.getValue());
                statement.setInt(5, prices.get(number++));
                statement.addBatch();
            }
            change(statement);
        }
        return id;
    }

    /** Takes items out of the stock. */
    private void take(Connection connection, TreeMap<Integer, Integer> wanted) throws SQLException {
        String query = "UPDATE stock SET quantity = quantity - ? WHERE item_id = ?";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            for (var each : wanted.entrySet()) {
                statement.setInt(1, each.getValue());
                statement.setInt(2, each.getKey());
                statement.addBatch();
            }
            change(statement);
        }
    }

    private Connection connect() throws SQLException {
        try (Call call = Call.of("Orders.connect")) {
            return pool == null ? DriverManager.getConnection(url) : pool.getConnection();
        }
    }

    private ResultSet find(PreparedStatement statement) throws SQLException {
        try (Call call = Call.of("Orders.find")) {
            return statement.executeQuery();
        }
    }

    private void change(PreparedStatement statement) throws SQLException {
        try (Call call = Call.of("Orders.change")) {
            statement.executeBatch();
        }
    }

    private void commit(Connection connection) throws SQLException {
        try (Call call = Call.of("Orders.commit")) {
            connection.commit();
        }
    }

    private void send(HttpServletResponse response, int status, String text) throws IOException {
        try (Call call = Call.of("Orders.send")) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            response.setStatus(status);
            response.setContentType("text/html;charset=utf-8");
            response.setContentLength(bytes.length);
            response.getOutputStream().write(bytes);
        }
    }

    /** Before a run: fills the pool, and starts Flight Recorder. */
    private synchronized void begin(HttpServletResponse response) throws SQLException, IOException {
        List<Connection> all = new ArrayList<>();
        for (int place = 0; pool != null && place < pool.getMaxActive(); place++) {
            all.add(pool.getConnection());
        }
        for (Connection each : all) {
            // So that what is counted afterwards is of the run. PostgreSQL has this function from version 15 on.
            try (PreparedStatement statement = each.prepareStatement("SELECT pg_stat_force_next_flush()")) {
                statement.execute();
            }
            each.close();
        }
        recording = new Recording();
        recording.enable("jdk.ExecutionSample").withPeriod(Duration.ofMillis(10));
        recording.enable(Call.class).withThreshold(Duration.ZERO);
        recording.start();
        cpuNs = cpuNs();
        collectedMs = collectedMs();
        response.setStatus(204);
    }

    /** After a run: answers with its recording. Without connections, PostgreSQL knows what they did. */
    private synchronized void end(HttpServletResponse response) throws IOException, InterruptedException {
        response.setHeader("Cpu-Ns", Long.toString(cpuNs() - cpuNs));
        response.setHeader("Collected-Ms", Long.toString(collectedMs() - collectedMs));
        recording.stop();
        Path file = Path.of("run.jfr").toAbsolutePath();
        recording.dump(file);
        recording.close();
        if (pool != null) {
            // The next one who wants a connection makes a new pool.
            pool.close(true);
        }
        response.setContentLengthLong(Files.size(file));
        Files.copy(file, response.getOutputStream());
    }

    private static long cpuNs() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }

    private static long collectedMs() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionTime).sum();
    }
}
