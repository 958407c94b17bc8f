import java.util.HashMap;
import java.util.Map;

/** Sends reports from four threads, which share a map. */
public class Main {
    private static final Map<String, Integer> REPORTS = new HashMap<>();

    /** What the printing service takes for a report: it confirms after 100 ms. */
    private static int print(String name) throws InterruptedException {
        Thread.sleep(100);
        return name.length();
    }

    private static void report(String name) throws InterruptedException {
        int pages = print(name);
        synchronized (REPORTS) {
            REPORTS.put(name, pages);
        }
    }

    private static void work(int worker) {
        try {
            for (int n = 0; n < 4; n++) {
                report("report-" + worker + "-" + n);
            }
        } catch (InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    public static void main(String[] words) throws InterruptedException {
        Thread[] workers = new Thread[4];
        for (int n = 0; n < workers.length; n++) {
            int worker = n;
            workers[n] = new Thread(() -> work(worker), "worker-" + n);
            workers[n].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        System.out.println(REPORTS.size() + " reports");
    }
}
