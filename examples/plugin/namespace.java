package generated_program;

import com.pulumi.Context;
import com.pulumi.Pulumi;
import com.pulumi.core.Output;
import com.pulumi.gatehouse.Namespace;
import com.pulumi.gatehouse.NamespaceArgs;
import com.pulumi.gatehouse.inputs.NamespaceSettingsArgs;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;

public class App {
    public static void main(String[] args) {
        Pulumi.run(App::stack);
    }

    public static void stack(Context ctx) {
        var staging = new Namespace("staging", NamespaceArgs.builder()
            .name("staging")
            .settings(NamespaceSettingsArgs.builder()
                .sessionRecord(true)
                .connectionAnnouncement("Staging. Break things here.")
                .build())
            .build());

    }
}
